"""A whole chat completion as the server-sent events of a stream, for an answer that did not come as one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_super.model.protocols.protocol import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

# The fields of a message that arrive in pieces, which the client joins.
TEXTS = ("reasoning_content", "content", "refusal")


def events(body: dict[str, Any], *, usage: bool = False) -> Iterator[str]:
    """The events of the stream of a `chat.completion` object; `usage` adds an event with its usage."""
    for chunk in chunks(body, usage=usage):
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def chunks(body: dict[str, Any], *, usage: bool = False) -> Iterator[dict[str, Any]]:
    common = {"object": "chat.completion.chunk"}
    common |= {key: body[key] for key in ("id", "created", "model", "system_fingerprint") if key in body}
    for choice in body["choices"]:
        index = choice.get("index", 0)
        for delta in deltas(choice["message"]):
            yield {**common, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        last = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason") or "stop"}
        if choice.get("logprobs"):
            last["logprobs"] = choice["logprobs"]
        yield {**common, "choices": [last]}
    if usage:
        yield {**common, "choices": [], "usage": body.get("usage")}


def deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The pieces that a client adds up to the message."""
    rest = {key: value for key, value in message.items() if key not in (*TEXTS, "tool_calls") and value}
    yield {"role": "assistant", **rest, "content": None if message.get("content") is None else ""}
    for name in TEXTS:
        for piece in pieces(message.get(name) or ""):
            yield {name: piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call.get("function") or {}
        # The first piece has the name and no arguments, as OpenAI sends it.
        first = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [first]}
        for piece in pieces(function.get("arguments") or ""):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def wants_usage(request: dict[str, Any]) -> bool:
    options = request.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))
