"""Responses as chat completions, and back."""

import json
from itertools import groupby
from typing import Any

from pytest_super.json_values import is_list_of_objects, load_object, object_in, objects
from pytest_super.model.protocols.exchange import calls_in, refusal_in
from pytest_super.model.protocols.protocol import Body, Request, Tokens, chat_tokens, text_of
from pytest_super.model.protocols.responses.tools import (
    Tools,
    as_function,
    call_item,
    found_names,
    tool_call,
    tools_by_name,
)

# Fields that mean the same in both.
SAME = ("temperature", "top_p", "parallel_tool_calls", "user", "prompt_cache_key")
REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
CALLS = ("function_call", "custom_tool_call", "tool_search_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")


def to_chat(request: Request) -> Request:
    chat = {name: request[name] for name in SAME if name in request}
    chat["messages"] = messages(request)
    if tools := [as_function(tool, name) for name, tool in tools_by_name(request).items()]:
        chat["tools"] = tools
    if (choice := chat_choice(request.get("tool_choice"))) is not None and tools:
        chat["tool_choice"] = choice
    if "max_output_tokens" in request:
        chat["max_tokens"] = request["max_output_tokens"]
    if effort := object_in(request, "reasoning").get("effort"):
        chat["reasoning_effort"] = effort
    if (form := object_in(request, "text").get("format")) and form.get("type") != "text":
        chat["response_format"] = response_format(form)
    return chat


def response_format(form: dict[str, Any]) -> dict[str, Any]:
    if form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", "json_schema": {name: form[name] for name in form if name != "type"}}


def chat_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    if isinstance(choice, dict) and choice.get("type") in ("function", "custom"):
        return {"type": "function", "function": {"name": choice.get("name")}}
    return None


# The conversation


def messages(request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if request.get("instructions"):
        found.append({"role": "system", "content": text_of(request["instructions"])})
    items = request["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for are_outputs, group in groupby(items, lambda item: item.get("type") in OUTPUTS):
        if are_outputs:
            found += answers(list(group))
        else:
            for item in group:
                add(found, item)
    return list(map(finished, found))


def answers(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of the results of one turn's calls."""
    found = [tool_message(item) for item in outputs]
    # A message of a tool has text alone, and nothing may stand between the results of one turn.
    images = [image for item in outputs for image in images_in(item.get("output"))]
    return [*found, {"role": "user", "content": images}] if images else found


def add(found: list[dict[str, Any]], item: dict[str, Any]) -> None:
    """Add one item, not of a tool. A turn's items become one message, whose texts `finished` joins."""
    kind = item.get("type", "message")
    if kind == "message" and item.get("role") != "assistant":
        role = "user" if item.get("role") == "user" else "system"
        found.append({"role": role, "content": chat_parts(item.get("content"))})
    elif kind == "message":
        # What the model says when it refuses is one of its texts, too.
        refusals = map(refusal_in, objects(item.get("content")))
        turn(found)["content"] += [text_of(item.get("content")), *refusals]
    elif kind == "reasoning":
        turn(found).update(thinking_of(item))
    elif kind in CALLS:
        turn(found).setdefault("tool_calls", []).append(tool_call(item))
    elif kind != "additional_tools":
        found.append({"role": "user", "content": json.dumps(item)})


def turn(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The message of the model's present turn."""
    if not found or found[-1]["role"] != "assistant":
        found.append({"role": "assistant", "content": []})
    return found[-1]


def finished(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] != "assistant":
        return message
    texts = message["content"]
    return {**message, "content": "\n".join(filter(None, texts)) if texts else None}


def tool_message(item: dict[str, Any]) -> dict[str, Any]:
    text = found_names(item) if item["type"] == "tool_search_output" else text_of(item.get("output"))
    return {"role": "tool", "tool_call_id": item.get("call_id"), "content": text}


def chat_parts(content: Any) -> Any:
    parts = content if isinstance(content, list) else []
    if isinstance(content, str) or not images_in(content):
        return text_of(content)
    texts = [{"type": "text", "text": each["text"]} for each in parts if each.get("text")]
    return [*texts, *images_in(content)]


def images_in(content: Any) -> list[dict[str, Any]]:
    parts = content if is_list_of_objects(content) else []
    return [
        {"type": "image_url", "image_url": {"url": each["image_url"]}}
        for each in parts
        if isinstance(each.get("image_url"), str)
    ]


def thinking_of(item: dict[str, Any]) -> dict[str, Any]:
    """The fields of a message that have its thoughts, from an item that `reasoning_item` made."""
    fields: dict[str, Any] = {}
    if text := text_of(item.get("summary")):
        fields["reasoning_content"] = text
    blocks = load_object(item.get("encrypted_content")).get("thinking_blocks")
    return fields | ({"thinking_blocks": blocks} if is_list_of_objects(blocks) else {})


def said(output: Any) -> dict[str, Any]:
    """The items of an answer as one message."""
    found: list[dict[str, Any]] = []
    for item in objects(output):
        if item.get("type") in ("message", "reasoning", *CALLS):
            add(found, {**item, "role": "assistant"})
    return finished(turn(found))


# The answer


def from_chat(body: Body, request: Request) -> Body:
    choice = body["choices"][0]
    reason = REASONS.get(str(choice.get("finish_reason")))
    return {
        "id": f"resp_{body.get('id', '')}",
        "object": "response",
        "created_at": body.get("created") or 0,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "model": body.get("model"),
        "output": output_items(choice["message"], body.get("id", ""), tools_by_name(request)),
        "usage": usage(chat_tokens(object_in(body, "usage"))),
        "instructions": request.get("instructions"),
        "metadata": request.get("metadata") or {},
        "parallel_tool_calls": request.get("parallel_tool_calls", True),
        "temperature": request.get("temperature"),
        "top_p": request.get("top_p"),
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools", []),
        "store": False,
    }


def output_items(message: dict[str, Any], name: str, tools: Tools) -> list[dict[str, Any]]:
    items = []
    thought, blocks = text_of(message.get("reasoning_content")), objects(message.get("thinking_blocks"))
    if thought or blocks:
        items.append(reasoning_item(thought, blocks, f"rs_{name}"))
    if content := output_parts(message):
        items.append({"id": f"msg_{name}", "type": "message", "role": "assistant", "content": content})
    items += [call_item(call, f"fc_{name}_{number}", tools) for number, call in enumerate(calls_in(message))]
    return [{**item, "status": "completed"} for item in items]


def output_parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    text, refusal = text_of(message.get("content")), refusal_in(message)
    parts: list[dict[str, Any]] = []
    if text:
        parts.append({"type": "output_text", "text": text, "annotations": []})
    if refusal:
        parts.append({"type": "refusal", "refusal": refusal})
    return parts


def reasoning_item(text: str, blocks: list[dict[str, Any]], name: str) -> dict[str, Any]:
    item: dict[str, Any] = {"id": name, "type": "reasoning", "summary": []}
    if text:
        item["summary"] = [{"type": "summary_text", "text": text}]
    # The client sends it back unread: providers want the thoughts before a call of a tool again.
    item["encrypted_content"] = json.dumps({"thinking_blocks": blocks}) if blocks else None
    return item


def usage(used: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": used.prompt,
        "input_tokens_details": {"cached_tokens": used.cached},
        "output_tokens": used.completion,
        "output_tokens_details": {"reasoning_tokens": used.thought},
        "total_tokens": used.prompt + used.completion,
    }
