"""A whole answer of Responses as the events of its stream."""

from collections.abc import Iterator
from typing import Any

from pytest_super.json_values import objects
from pytest_super.model.protocols.protocol import Body, Event, Request, pieces, text_of

# An item before its first part.
EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}


def replay(body: Body, request: Request) -> Iterator[Event]:  # noqa: ARG001
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    for number, event in enumerate(unnumbered(body, begun)):
        yield {**event, "sequence_number": number}


def unnumbered(body: Body, begun: Body) -> Iterator[Event]:
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(objects(body["output"])):
        yield from item_events(item, index)
    yield {"type": f"response.{body['status']}", "response": body}


def item_events(item: dict[str, Any], index: int) -> Iterator[Event]:
    kind, place = item.get("type"), {"output_index": index, "item_id": item.get("id")}
    begun = {**item, "status": "in_progress", **EMPTY.get(str(kind), {})}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    if kind == "message":
        for number, part in enumerate(objects(item.get("content"))):
            yield from part_events(part, {**place, "content_index": number})
    elif kind == "reasoning":
        for number, part in enumerate(objects(item.get("summary"))):
            at = {**place, "summary_index": number}
            yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
            yield from piece_events("response.reasoning_summary_text", "text", part, at)
            yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
    elif kind == "function_call":
        yield from piece_events("response.function_call_arguments", "arguments", item, place)
    elif kind == "custom_tool_call":
        yield from piece_events("response.custom_tool_call_input", "input", item, place)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def part_events(part: dict[str, Any], place: dict[str, Any]) -> Iterator[Event]:
    field = "refusal" if part.get("type") == "refusal" else "text"
    yield {"type": "response.content_part.added", **place, "part": {**part, field: ""}}
    if field == "refusal":
        yield from piece_events("response.refusal", field, part, place)
    else:
        yield from piece_events("response.output_text", field, part, {**place, "logprobs": []})
    yield {"type": "response.content_part.done", **place, "part": part}


def piece_events(kind: str, field: str, owner: dict[str, Any], place: dict[str, Any]) -> Iterator[Event]:
    text = text_of(owner.get(field))
    for piece in pieces(text):
        yield {"type": f"{kind}.delta", **place, "delta": piece}
    yield {"type": f"{kind}.done", **place, field: text}
