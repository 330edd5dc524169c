"""OpenAI's Responses (https://platform.openai.com/docs/api-reference/responses), which Codex speaks."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_super.json_values import is_list_of_objects, parts_in
from pytest_super.model.protocols.openai import OpenAI
from pytest_super.model.protocols.protocol import (
    Body,
    Event,
    Request,
    StreamError,
    Tokens,
    count,
    detail,
    invalid,
    named_event,
)
from pytest_super.model.protocols.responses import conversion, stream
from pytest_super.model.protocols.route import Route

NAMES = """
    input instructions tools tool_choice parallel_tool_calls reasoning text include temperature top_p
    top_logprobs max_output_tokens truncation stream_options prompt_cache_key prompt_cache_retention
    prompt_cache_options safety_identifier user metadata client_metadata context_management
"""
# What leads to something that the provider keeps, or does later: a trial's calls stand for themselves.
REFUSED = {
    "previous_response_id": "is not offered, because no answer is stored: send the whole conversation",
    "conversation": "is not offered, because no conversation is stored: send it whole in `input`",
    "prompt": "is not offered: send the prompt itself in `input`",
    "background": "is not offered: ask and wait",
}
# Tools that the client runs itself. Any other is the provider's: `web_search`, `code_interpreter`, `mcp`, …
CLIENT_TOOLS = frozenset(
    ("function", "custom", "local_shell", "apply_patch", "computer", "computer_use_preview", "namespace")
)
# Fields of parts of a prompt by which a provider would fetch a file.
ADDRESSES = ("image_url", "file_url", "file_id")


class Responses(OpenAI):
    fields = frozenset(NAMES.split())
    name = "responses"
    conversation = "input"
    refused: ClassVar[Mapping[str, str]] = REFUSED
    file_types = ("input_file", "input_audio")
    before = (None, "response.created", "response.in_progress", "response.queued")
    routes = (Route("/v1/responses"),)
    said_in = "delta"
    harmless: ClassVar[Request] = {"input": "Say yes.", "store": False, "max_output_tokens": 16}
    replay = staticmethod(stream.replay)
    to_chat = staticmethod(conversion.to_chat)
    from_chat = staticmethod(conversion.from_chat)

    def address(self, base: str, model: str, *, is_stream: bool) -> str:  # noqa: ARG002
        return f"{base}/responses"

    def accepted(self, request: Request, *, is_open: bool) -> tuple[Request, list[str]]:
        result = self.seen(request)
        if not isinstance(request.get("input"), str) and not is_list_of_objects(request.get("input")):
            raise invalid("input", "must be a text or a list of objects")
        # The arguments of a tool are data, whatever their fields are called.
        for part in parts_in(request["input"], ("content", "output")):
            check_part(part)
        # A stored answer would outlive the trial.
        result["store"] = False
        return result, [] if is_open else remove_hosted_tools(result)

    def with_defaults(self, request: Request, parameters: Request) -> Request:
        names = {"temperature", "top_p", "service_tier", "user", "parallel_tool_calls"}
        result = {name: value for name, value in parameters.items() if name in names} | request
        length = parameters.get("max_completion_tokens", parameters.get("max_tokens"))
        if length is not None:
            result.setdefault("max_output_tokens", length)
        if effort := parameters.get("reasoning_effort"):
            result["reasoning"] = {"effort": effort, **(request.get("reasoning") or {})}
        return result

    def said(self, body: Body, request: Request) -> dict[str, Any]:  # noqa: ARG002
        return conversion.said(body["output"])

    def whole(self, events: list[Event]) -> Body | None:
        for event in reversed(events):
            if event.get("object") == "response":
                # A server that cannot stream sends it whole.
                return event
            if event.get("type") in ("response.failed", "error"):
                raise StreamError(event.get("response") or event)
            if event.get("type") in ("response.completed", "response.incomplete"):
                items = [each["item"] for each in events if each.get("type") == "response.output_item.done"]
                # Some servers leave the output out of the last event.
                return {**event["response"], "output": event["response"].get("output") or items}
        return None

    def tokens(self, usage: Any) -> Tokens:
        cached = detail(usage, "input_tokens_details", "cached_tokens")
        return Tokens(count(usage.get("input_tokens")), count(usage.get("output_tokens")), cached)

    def error_event(self, code: str, message: str) -> str:
        response = {"object": "response", "status": "failed", "error": {"code": code, "message": message}}
        return named_event({"type": "response.failed", "response": {"id": "resp_failed", **response}})


def check_part(part: dict[str, Any]) -> None:
    """Raises ModelCallError, INVALID, if a part of the prompt has to be fetched."""
    is_bare = "id" in part and not part.keys() & {"type", "role", "content"}
    if part.get("type") == "item_reference" or is_bare:
        raise invalid("input", "has an item_reference, and no answer is stored: send the item itself")
    for name in ADDRESSES:
        url = part.get(name)
        if url is not None and not (isinstance(url, str) and url.startswith("data:")):
            raise invalid(f"input: {name}", "must be a data: URL; nothing is fetched for a model")


def remove_hosted_tools(request: Request) -> list[str]:
    """Remove from a request the tools that the provider would run; returns their types."""
    removed: list[str] = []
    items = request["input"] if isinstance(request["input"], list) else []
    # Items of the conversation can add tools as well.
    request["input"] = [without_hosted(item, removed) for item in items] or request["input"]
    request |= without_hosted({"tools": request.pop("tools", [])}, removed)
    choice = request.get("tool_choice")
    named = [choice.get("type"), *map(type_of, choice.get("tools") or ())] if isinstance(choice, dict) else []
    if not request["tools"]:
        del request["tools"]
    if (removed and "tools" not in request) or not set(removed).isdisjoint(named):
        request.pop("tool_choice", None)
    return removed


def without_hosted(holder: dict[str, Any], removed: list[str]) -> dict[str, Any]:
    """The object with those of its `tools` that the client runs; the types of the others are added."""
    if "tools" not in holder:
        return holder
    if not is_list_of_objects(holder["tools"]):
        raise invalid("tools", "must be a list of objects")
    removed += [type_of(tool) for tool in holder["tools"] if not is_clients(tool)]
    return {**holder, "tools": [tool for tool in holder["tools"] if is_clients(tool)]}


def type_of(tool: Any) -> str:
    return str(tool.get("type")) if isinstance(tool, dict) else ""


def is_clients(tool: dict[str, Any]) -> bool:
    """Whether the client runs the tool, or all tools of a namespace."""
    kind = type_of(tool)
    if kind == "shell":
        return type_of(tool.get("environment")) == "local"
    if kind == "tool_search":
        return tool.get("execution") == "client"
    if kind == "namespace":
        inner: Any = tool.get("tools")
        return is_list_of_objects(inner) and all(map(is_clients, inner))
    return kind in CLIENT_TOOLS
