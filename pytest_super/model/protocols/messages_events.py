"""A whole answer of Messages as the events of its stream, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_super.model.protocols.chat_events import pieces
from pytest_super.model.protocols.protocol import StreamError, load_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.model.protocols.protocol import Body, Event

# The field of a block that each kind of delta makes longer, and the field of the delta.
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    # Its pieces of JSON make up the input in the end.
    "input_json_delta": ("input", "partial_json"),
}

# A block before its first piece.
EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def events(body: Body) -> Iterator[Event]:
    used = {**body["usage"], "output_tokens": 0}
    begun = {**body, "content": [], "stop_reason": None, "usage": used}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(body["content"]):
        yield from block_events(block, index)
    ended = {"stop_reason": body["stop_reason"], "stop_sequence": body["stop_sequence"]}
    yield {"type": "message_delta", "delta": ended, "usage": body["usage"]}
    yield {"type": "message_stop"}


def block_events(block: dict[str, Any], index: int) -> Iterator[Event]:
    yield {
        "type": "content_block_start",
        "index": index,
        "content_block": {**block, **EMPTY.get(block["type"], {})},
    }
    for delta in deltas(block):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block.get("signature", "")}
    elif block["type"] == "tool_use":
        text = json.dumps(block["input"])
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(text))


def whole(stream: list[Event]) -> Body | None:
    """The answer; None if the stream broke off. Raises StreamError."""
    body: dict[str, Any] = {}
    content: dict[int, dict[str, Any]] = {}
    for event in stream:
        kind = event.get("type")
        if kind == "error":
            raise StreamError(event)
        if kind == "message_start":
            body = dict(event["message"])
        elif kind == "content_block_start":
            block = dict(event["content_block"])
            # It starts as an empty object and goes on as text.
            content[event["index"]] = block | ({"input": ""} if "input" in block else {})
        elif kind == "content_block_delta":
            add(content[event["index"]], event["delta"])
        elif kind == "message_delta":
            body |= event["delta"]
            body["usage"] = {**body.get("usage", {}), **(event.get("usage") or {})}
        elif kind == "message_stop":
            return {**body, "content": list(map(finished, content.values()))}
    return None


def add(block: dict[str, Any], delta: dict[str, Any]) -> None:
    if delta["type"] in DELTAS:
        name, piece = DELTAS[delta["type"]]
        block[name] = block.get(name, "") + delta[piece]
    elif delta["type"] == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]


def finished(block: dict[str, Any]) -> dict[str, Any]:
    is_text = isinstance(block.get("input"), str)
    return {**block, "input": load_object(block["input"])} if is_text else block
