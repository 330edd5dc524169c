"""OpenAI's chat completions (https://platform.openai.com/docs/api-reference/chat).

A request can come from inside a sandbox, so nothing in it may steer litellm: a field such as `api_base` would
send the key to whoever asked for it, and the host would fetch an image from any address.
"""

from typing import Any, ClassVar

from pytest_super.json_values import is_list_of_objects, objects
from pytest_super.model.protocols.chat import stream
from pytest_super.model.protocols.openai import OpenAI
from pytest_super.model.protocols.protocol import (
    END_MARK,
    Body,
    Event,
    Request,
    chat_tokens,
    data_event,
    invalid,
)
from pytest_super.model.protocols.route import Route

# The fields of OpenAI's chat completions that shape an answer. Not among them: `stream`, because the
# gateway decides that, `web_search_options`, because the model could find a task's solution, and
# `service_tier`, because its price is for the run to choose.
NAMES = """
    messages temperature top_p n stop seed max_tokens max_completion_tokens presence_penalty frequency_penalty
    logit_bias logprobs top_logprobs response_format tools tool_choice parallel_tool_calls functions
    function_call reasoning_effort verbosity thinking modalities prediction user store
    safety_identifier prompt_cache_key prompt_cache_retention
"""
MESSAGE_NAMES = """
    role content name tool_calls tool_call_id function_call refusal reasoning_content thinking_blocks
    cache_control provider_specific_fields
"""
TOOL_KEYS = frozenset(("type", "function", "cache_control"))
MESSAGE_FIELDS = frozenset(MESSAGE_NAMES.split())
ROLES = ("system", "developer", "user", "assistant", "tool", "function")
PARTS = ("text", "refusal", "thinking", "redacted_thinking", "input_audio", "image_url")


class ChatCompletions(OpenAI):
    fields = frozenset(NAMES.split())
    name = "chat completions"
    routes = (Route("/v1/chat/completions"),)
    relayed_end = data_event(END_MARK)
    said_in = "choices"
    harmless: ClassVar[Request] = {"messages": [{"role": "user", "content": "Say yes."}]}
    tokens = staticmethod(chat_tokens)
    has_part = staticmethod(stream.has_part)
    whole = staticmethod(stream.whole)
    replay = staticmethod(stream.replay)
    written = staticmethod(data_event)

    def address(self, base: str, model: str, *, is_stream: bool) -> str:  # noqa: ARG002
        return f"{base}/chat/completions"

    def content(self, request: Request, model: str, *, is_stream: bool) -> Request:
        options = {"stream": True, "stream_options": {"include_usage": True}} if is_stream else {}
        return {**request, "model": model, **options}

    def with_defaults(self, request: Request, parameters: Request) -> Request:
        return {**parameters, **request}

    def accepted(self, request: Request, *, is_open: bool) -> tuple[Request, list[str]]:
        result = self.seen(request)
        messages = request.get("messages")
        if not isinstance(messages, list) or not messages:
            raise invalid("messages", "must be a list of at least one message")
        if "store" in result:
            # A stored answer would outlive the trial.
            result["store"] = False
        result["messages"] = [accepted_message(each, f"messages[{n}]") for n, each in enumerate(messages)]
        # Providers reject an empty list, although it means the same as none.
        if not result.get("tools"):
            result.pop("tools", None)
        return result, [] if is_open else remove_hosted_tools(result)

    def to_chat(self, request: Request) -> Request:
        return request

    def from_chat(self, body: Body, request: Request) -> Body:  # noqa: ARG002
        return body

    def said(self, body: Body, request: Request) -> dict[str, Any]:  # noqa: ARG002
        message: dict[str, Any] = body["choices"][0]["message"]
        return message

    def relayed(self, event: Event, request: Request) -> str:
        is_of_interest = objects(event.get("choices")) or stream.wants_usage(request)
        return super().relayed(event, request) if is_of_interest else ""


def remove_hosted_tools(request: Request) -> list[str]:
    """Remove from a request the tools that are no functions, which litellm knows of some providers."""
    tools = request.pop("tools", [])
    kept = [tool for tool in tools if is_function(tool)]
    if kept:
        request["tools"] = kept
    choice = request.get("tool_choice")
    if not kept or (isinstance(choice, dict) and choice.get("type") != "function"):
        request.pop("tool_choice", None)
    return [str(tool.get("type")) for tool in tools if not is_function(tool)]


def is_function(tool: dict[str, Any]) -> bool:
    return (
        tool.get("type") == "function" and isinstance(tool.get("function"), dict) and tool.keys() <= TOOL_KEYS
    )


def accepted_message(message: Any, place: str) -> dict[str, Any]:
    if not isinstance(message, dict) or message.get("role") not in ROLES:
        raise invalid(place, f"must be an object whose role is one of {', '.join(ROLES)}")
    content = message.get("content")
    if isinstance(content, list):
        for n, part in enumerate(content):
            check_part(part, f"{place}.content[{n}]")
    elif not isinstance(content, str | None):
        raise invalid(f"{place}.content", "must be text, a list of parts or null")
    if not is_list_of_objects(message.get("tool_calls") or []):
        raise invalid(f"{place}.tool_calls", "must be a list of objects")
    return {name: value for name, value in message.items() if name in MESSAGE_FIELDS}


def check_part(part: Any, place: str) -> None:
    if not isinstance(part, dict) or part.get("type") not in PARTS:
        raise invalid(place, f"must be an object whose type is one of {', '.join(PARTS)}")
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        raise invalid(f"{place}.text", "must be text")
    if part["type"] == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        if not isinstance(url, str) or not url.startswith("data:"):
            raise invalid(f"{place}.image_url", "must be a data: URL; nothing is fetched for a model")
