"""Messages as chat completions, and back."""

import json
import uuid
from typing import Any

from pytest_super.json_values import is_list_of_objects, load_object, object_in, objects
from pytest_super.model.protocols.exchange import calls_in, refusal_in
from pytest_super.model.protocols.openai import chat_call, chat_function
from pytest_super.model.protocols.protocol import Body, Request, Tokens, chat_tokens, text_of

# Fields with the same meaning, and their names in chat completions.
NAMES = {"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop_sequences": "stop"}
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
REASONS = {"length": "max_tokens", "content_filter": "refusal"}
THOUGHTS = ("thinking", "redacted_thinking")
# How a provider that knows three levels understands the others.
EFFORTS = {"max": "high", "xhigh": "high"}


def to_chat(request: Request) -> Request:
    chat = {other: request[name] for name, other in NAMES.items() if name in request}
    chat["messages"] = messages(request)
    if tools := request.get("tools"):
        chat["tools"] = list(map(as_function, tools))
        chat |= choice(request.get("tool_choice"))
    output = object_in(request, "output_config")
    if effort := output.get("effort"):
        chat["reasoning_effort"] = EFFORTS.get(effort, effort)
    form = output.get("format") or request.get("output_format")
    if isinstance(form, dict) and form.get("type") == "json_schema":
        schema = {"name": "answer", "schema": form.get("schema")}
        chat["response_format"] = {"type": "json_schema", "json_schema": schema}
    return chat


def choice(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        return {}
    found: dict[str, Any] = {}
    if given.get("type") == "tool":
        found["tool_choice"] = {"type": "function", "function": {"name": given.get("name")}}
    elif given.get("type") in CHOICES:
        found["tool_choice"] = CHOICES[given["type"]]
    if given.get("disable_parallel_tool_use"):
        found["parallel_tool_calls"] = False
    return found


def as_function(tool: dict[str, Any]) -> dict[str, Any]:
    name, description, schema = tool.get("name"), tool.get("description"), tool.get("input_schema")
    return chat_function(name, description, schema, tool.get("strict"))


# The conversation


def messages(request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if request.get("system"):
        found.append({"role": "system", "content": chat_parts(blocks(request["system"]))})
    for message in request["messages"]:
        content = blocks(message.get("content"))
        if message.get("role") == "assistant":
            found.append(turn(content))
        elif message.get("role") == "system":
            found.append({"role": "system", "content": chat_parts(content)})
        else:
            found += answers(content)
    return found


def blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if is_list_of_objects(content) else []


def answers(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a user's turn: the results of tools, then what the user says."""
    results = [block for block in content if block.get("type") == "tool_result"]
    found = [tool_message(block) for block in results]
    # A message of a tool has text alone.
    images = [image for block in results for image in blocks(block.get("content")) if is_image(image)]
    said = [block for block in content if block.get("type") != "tool_result"]
    if images or said:
        found.append({"role": "user", "content": chat_parts(images + said)})
    return found


def tool_message(block: dict[str, Any]) -> dict[str, Any]:
    parts = [part for part in blocks(block.get("content")) if not is_image(part)]
    text = "\n".join(map(said_in, parts))
    # A message of a tool has no field that says so.
    text = f"[error] {text}" if block.get("is_error") else text
    return {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": text}


def turn(given: Any) -> dict[str, Any]:
    """The message of a turn of the model, from its blocks."""
    content = objects(given)
    message: dict[str, Any] = {"role": "assistant", "content": text_of(content) or None}
    thoughts = [block for block in content if block.get("type") in THOUGHTS]
    if thoughts:
        message["thinking_blocks"] = thoughts
        texts = [text_of(each.get("thinking")) for each in thoughts]
        message["reasoning_content"] = "\n".join(filter(None, texts))
    calls = [tool_call(block) for block in content if block.get("type") == "tool_use"]
    return message | ({"tool_calls": calls} if calls else {})


def tool_call(block: dict[str, Any]) -> dict[str, Any]:
    return chat_call(block.get("id"), block.get("name"), json.dumps(block.get("input") or {}))


def chat_parts(content: list[dict[str, Any]]) -> Any:
    """The parts, as one text if they are nothing else: many servers understand nothing else."""
    if not any(is_image(block) or "cache_control" in block for block in content):
        return "\n".join(map(said_in, content))
    return [chat_part(block) for block in content]


def chat_part(block: dict[str, Any]) -> dict[str, Any]:
    if is_image(block):
        source = block.get("source") or {}
        url = f"data:{source.get('media_type')};base64,{source.get('data')}"
        return {"type": "image_url", "image_url": {"url": url}}
    part = {"type": "text", "text": said_in(block)}
    return part | ({"cache_control": block["cache_control"]} if "cache_control" in block else {})


def said_in(block: dict[str, Any]) -> str:
    return str(block["text"]) if "text" in block else json.dumps(block)


def is_image(block: dict[str, Any]) -> bool:
    return block.get("type") == "image"


# The answer


def from_chat(body: Body, request: Request) -> Body:  # noqa: ARG001
    chosen = body["choices"][0]
    return {
        # Claude Code takes answers with one id for one answer, and some servers use an id again.
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": content_of(chosen["message"]),
        "stop_reason": stop_reason(chosen),
        "stop_sequence": None,
        "usage": usage(chat_tokens(object_in(body, "usage"))),
    }


def stop_reason(chosen: dict[str, Any]) -> str:
    message = chosen["message"]
    if reason := REASONS.get(str(chosen.get("finish_reason"))):
        return reason
    if refusal_in(message):
        return "refusal"
    # Many local servers finish with "stop" when they call.
    return "tool_use" if calls_in(message) else "end_turn"


def content_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    thoughts = [block for block in objects(message.get("thinking_blocks")) if block.get("type") in THOUGHTS]
    thought = text_of(message.get("reasoning_content"))
    if not thoughts and thought:
        thoughts = [{"type": "thinking", "thinking": thought}]
    content = [whole_thought(block) if block["type"] == "thinking" else block for block in thoughts]
    for text in filter(None, (text_of(message.get("content")), refusal_in(message))):
        content.append({"type": "text", "text": text})
    for call in calls_in(message):
        used = {"id": call["id"], "name": call["name"]}
        content.append({"type": "tool_use", **used, "input": load_object(call["arguments"])})
    return content


def whole_thought(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, **{name: text_of(block.get(name)) for name in ("thinking", "signature")}}


def usage(used: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": max(0, used.prompt - used.cached),
        "cache_read_input_tokens": used.cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": used.completion,
    }
