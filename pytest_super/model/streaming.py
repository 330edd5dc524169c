"""Whole answers as the streams that clients ask for: server-sent events, as OpenAI sends them.

An answer is only told when all of it is there and booked, so a stream makes no call shorter; it is for
clients that understand nothing else.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Readers of lines have limits, of 64 KiB some.
PIECE = 4096
# Of a message, what comes in pieces to be joined.
TEXTS = ("reasoning_content", "content", "refusal")


def events(body: dict[str, Any], *, usage: bool = False) -> Iterator[str]:
    """A `chat.completion` object as the events of its stream; with its usage where that was asked for."""
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
    """What a client adds up to the message."""
    rest = {key: value for key, value in message.items() if key not in (*TEXTS, "tool_calls") and value}
    yield {"role": "assistant", **rest, "content": None if message.get("content") is None else ""}
    for name in TEXTS:
        for piece in pieces(message.get(name) or ""):
            yield {name: piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call.get("function") or {}
        first = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [first]}
        for piece in pieces(function.get("arguments") or ""):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def wants_usage(request: dict[str, Any]) -> bool:
    options = request.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))
