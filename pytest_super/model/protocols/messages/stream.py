"""A whole answer of Messages as the events of its stream, and back."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pytest_super.json_values import load_object, object_in, objects
from pytest_super.model.protocols.protocol import Body, Event, Request, StreamError, pieces, text_of

# The field of a block that each kind of delta makes longer, and the field of the delta.
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    # Its pieces of JSON make up the input in the end.
    "input_json_delta": ("input", "partial_json"),
    # Comes in one piece.
    "compaction_delta": ("content", "content"),
    # Each is one of a list.
    "citations_delta": ("citations", "citation"),
}

# A block before its first piece.
EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def replay(body: Body, request: Request) -> Iterator[Event]:  # noqa: ARG001
    usage = object_in(body, "usage")
    begun = {**body, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(objects(body["content"])):
        yield from block_events(block, index)
    ended = {name: body.get(name) for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}


def block_events(block: dict[str, Any], index: int) -> Iterator[Event]:
    begun = {**block, **EMPTY.get(str(block.get("type")), {})}
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    for delta in deltas(block):
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = block.get("type")
    if kind == "text":
        for piece in pieces(text_of(block.get("text"))):
            yield {"type": "text_delta", "text": piece}
    elif kind == "thinking":
        for piece in pieces(text_of(block.get("thinking"))):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": text_of(block.get("signature"))}
    elif kind == "tool_use":
        text = json.dumps(block.get("input") or {})
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(text))


def whole(events: list[Event]) -> Body | None:
    """The answer; None if the stream broke off. Raises StreamError."""
    body: dict[str, Any] = {}
    content: dict[int, dict[str, Any]] = {}
    # By the block and its field, joined in the end: one by one would take quadratic time.
    added: dict[int, dict[str, list[Any]]] = {}
    for event in events:
        kind = event.get("type")
        if kind == "error":
            raise StreamError(event)
        if kind == "message":
            # A server that cannot stream sends it whole.
            return event
        if kind == "message_start":
            body = dict(event["message"])
        elif kind == "content_block_start":
            content[event["index"]], added[event["index"]] = event["content_block"], defaultdict(list)
        elif kind == "content_block_delta":
            add(added[event["index"]], event["delta"])
        elif kind == "message_delta":
            rest = {name: value for name, value in event.items() if name not in ("type", "delta")}
            body |= {**event["delta"], **rest, "usage": merged(body.get("usage"), event.get("usage"))}
        elif kind == "message_stop":
            return {**body, "content": [finished(block, added[n]) for n, block in content.items()]}
    return None


def merged(begun: Any, ended: Any) -> dict[str, Any]:
    """The usage of the first event with that of the last, where that states a figure."""
    begun, ended = (each if isinstance(each, dict) else {} for each in (begun, ended))
    return {**begun, **{name: value for name, value in ended.items() if value is not None}}


def usage_of(events: list[Event]) -> dict[str, Any]:
    """What a broken stream says that it used."""
    usage: dict[str, Any] = {}
    for event in events:
        if event.get("type") == "message_start":
            # Nothing of the answer has come by then.
            usage = {**object_in(event.get("message"), "usage"), "output_tokens": 0}
        elif event.get("type") == "message_delta":
            usage = merged(usage, event.get("usage"))
    return usage


def add(added: dict[str, list[Any]], delta: dict[str, Any]) -> None:
    if delta["type"] in DELTAS:
        name, piece = DELTAS[delta["type"]]
        added[name].append(delta[piece])


def finished(block: dict[str, Any], added: dict[str, list[Any]]) -> dict[str, Any]:
    """A block with all that was added to it."""
    result = dict(block)
    for name, values in added.items():
        if name == "citations":
            result[name] = [*(block.get(name) or ()), *values]
        elif name != "input":
            result[name] = (block.get(name) or "") + "".join(values)
    if "input" in block:
        result["input"] = load_object("".join(added.get("input", ()))) or block["input"] or {}
    return result
