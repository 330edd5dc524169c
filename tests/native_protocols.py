"""What providers send in Responses, in Messages, in streams of chat completions and of Gemini, for tests.

Written down from their documentation.

`events` makes the events of a whole answer from a mapping like those of tests.openai_server: `text`,
`reasoning_content`, `tool_calls`, `usage`, `native_usage` in the protocol's own names; `id` tells answers
apart; `items` are more items of a response.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pytest_super.model.protocols.messages import Messages

DONE = "data: [DONE]\n\n"
PATHS = ("/v1/responses", "/v1/messages")


def events(path: str, given: dict[str, Any], model: str) -> Iterator[dict[str, Any]]:
    make = responses_events if path.endswith("responses") else messages_events
    yield from make(given, model)


def whole(path: str, given: dict[str, Any], model: str) -> dict[str, Any]:
    """The answer to a request without `stream`."""
    if path.endswith("responses"):
        *_, last = events(path, given, model)
        response: dict[str, Any] = last["response"]
        return response
    body = Messages().whole(list(messages_events(given, model)))
    assert body is not None
    return body


def responses_events(given: dict[str, Any], model: str) -> Iterator[dict[str, Any]]:
    usage = given.get("usage", {"prompt_tokens": 20, "completion_tokens": 3})
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    output = list(output_items(given))
    for index, item in enumerate(output):
        place = {"output_index": index}
        yield {"type": "response.output_item.added", **place, "item": {**item, "content": []}}
        if item["type"] == "message":
            place = {**place, "item_id": item["id"], "content_index": 0}
            part = {"type": "output_text", "text": "", "annotations": []}
            yield {"type": "response.content_part.added", **place, "part": part}
            for word in words(given["text"]):
                yield {"type": "response.output_text.delta", **place, "delta": word, "logprobs": []}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.of_next_year", "whatever": 1}
    used = {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": usage.get("cached_tokens", 0)},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
    }
    whole = {**response, "status": "completed", "output": output, "usage": used}
    yield {"type": "response.completed", "response": whole}


def output_items(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    id = given.get("id", 1)
    if given.get("reasoning_content"):
        summary = [{"type": "summary_text", "text": given["reasoning_content"]}]
        yield {"id": f"rs_{id}", "type": "reasoning", "summary": summary, "encrypted_content": "gAAA"}
    if given.get("text"):
        part = {"type": "output_text", "text": given["text"], "annotations": []}
        yield {
            "id": f"msg_{id}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    for call in given.get("tool_calls", []):
        function = call["function"]
        yield {
            "id": f"fc_{call['id']}",
            "type": "function_call",
            "call_id": call["id"],
            "name": function["name"],
            "arguments": function["arguments"],
            "status": "completed",
        }
    yield from given.get("items", [])


def messages_events(given: dict[str, Any], model: str) -> Iterator[dict[str, Any]]:
    usage = given.get("usage", {"prompt_tokens": 20, "completion_tokens": 3})
    cached = usage.get("cached_tokens", 0)
    begun: dict[str, Any] = {
        "id": f"msg_{given.get('id', 1)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage["prompt_tokens"] - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1,
            **given.get("native_usage", {}),
        },
    }
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, (block, deltas) in enumerate(blocks(given)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if given.get("tool_calls") else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": usage["completion_tokens"]},
    }
    yield {"type": "message_stop"}


def blocks(given: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if thought := given.get("reasoning_content"):
        deltas = [
            {"type": "thinking_delta", "thinking": thought},
            {"type": "signature_delta", "signature": "s1"},
        ]
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if given.get("text"):
        deltas = [{"type": "text_delta", "text": word} for word in words(given["text"])]
        yield {"type": "text", "text": ""}, deltas
    for call in given.get("tool_calls", []):
        text = call["function"]["arguments"]
        halves = [text[: len(text) // 2], text[len(text) // 2 :]]
        deltas = [{"type": "input_json_delta", "partial_json": half} for half in halves]
        name = call["function"]["name"]
        yield {"type": "tool_use", "id": call["id"], "name": name, "input": {}}, deltas


def gemini_events(given: dict[str, Any], model: str) -> Iterator[dict[str, Any]]:
    whole = whole_of_gemini(given, model)
    common = {name: whole[name] for name in ("modelVersion", "responseId")}
    prompt = {"promptTokenCount": whole["usageMetadata"]["promptTokenCount"]}
    for part in gemini_texts(given, words):
        yield {"candidates": [gemini_candidate(part)], "usageMetadata": prompt, **common}
    yield {**whole, "candidates": [{**gemini_candidate(*gemini_calls(given)), "finishReason": "STOP"}]}


def whole_of_gemini(given: dict[str, Any], model: str) -> dict[str, Any]:
    usage = given.get("usage", {"prompt_tokens": 20, "completion_tokens": 3})
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    parts = [*gemini_texts(given, lambda text: [text]), *gemini_calls(given)]
    return {
        "candidates": [{**gemini_candidate(*parts), "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": prompt,
            "candidatesTokenCount": completion,
            "totalTokenCount": prompt + completion,
            "cachedContentTokenCount": usage.get("cached_tokens", 0),
            **given.get("native_usage", {}),
        },
        "modelVersion": model,
        "responseId": "r1",
    }


def gemini_texts(given: dict[str, Any], split: Callable[[str], list[str]]) -> Iterator[dict[str, Any]]:
    if thought := given.get("reasoning_content"):
        yield {"text": thought, "thought": True}
    yield from ({"text": piece} for piece in split(given.get("text") or ""))


def gemini_calls(given: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [call["function"] for call in given.get("tool_calls", [])]
    return [{"functionCall": {"name": call["name"], "args": json.loads(call["arguments"])}} for call in calls]


def gemini_candidate(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, "index": 0}


def words(text: str) -> list[str]:
    """The text in pieces that add up to it."""
    return re.findall(r"\S+\s*", text)


def chat_events(whole: dict[str, Any], body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of a `chat.completion` object, as OpenAI sends them."""
    common = {name: whole[name] for name in ("id", "created", "model", "system_fingerprint")}
    common = {**common, "object": "chat.completion.chunk"}
    message, reason = whole["choices"][0]["message"], whole["choices"][0]["finish_reason"]
    for delta in chat_deltas(message):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        yield {**common, "choices": [choice], "usage": None}
    yield {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": None}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**common, "choices": [], "usage": whole["usage"]}


def chat_deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if message["content"] is None else "", "refusal": None}
    for name in ("reasoning_content", "content"):
        value = message.get(name)
        for piece in words(value) if isinstance(value, str) else [value]:
            yield {name: piece}
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        yield {"tool_calls": calls}
        return
    for index, call in enumerate(calls):
        text = call["function"]["arguments"]
        yield {"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]}
        for half in (text[: len(text) // 2], text[len(text) // 2 :]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": half}}]}


def kind_of(event: dict[str, Any]) -> str:
    """Its type; that of a chunk of a chat completion, or of Gemini's, is the field that it adds to."""
    if "candidates" in event:
        return "finishReason" if "finishReason" in event["candidates"][0] else "text"
    if "choices" not in event:
        return str(event.get("type"))
    fields = [name for choice in event["choices"] for name in choice["delta"]]
    return fields[0] if fields else "finish_reason" if event["choices"] else "usage"


def as_text(event: dict[str, Any], *, is_raw: bool = False) -> str:
    """`is_raw`: characters beyond ASCII are not escaped."""
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=not is_raw)}\n\n"
