"""A whole answer of Responses as the events of its stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.json_values import objects
from pytest_super.model.protocols.protocol import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.model.protocols.protocol import Body, Event, Request

# An item before its first part.
EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
# The events of what an item says.
SAID = {"function_call": "function_call_arguments", "custom_tool_call": "custom_tool_call_input"}


def replay(body: Body, request: Request) -> Iterator[Event]:  # noqa: ARG001
    for number, event in enumerate(unnumbered(body)):
        yield {**event, "sequence_number": number}


def unnumbered(body: Body) -> Iterator[Event]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(objects(body["output"])):
        yield from item_events(item, index)
    yield {"type": f"response.{body['status']}", "response": body}


def item_events(item: dict[str, Any], index: int) -> Iterator[Event]:
    kind, place = str(item.get("type")), {"output_index": index, "item_id": item.get("id")}
    begun = {**item, "status": "in_progress", **EMPTY.get(kind, {})}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    for number, part in enumerate(objects(item.get("content"))):
        yield from part_events(
            "content_part", str(part.get("type")), part, {**place, "content_index": number}
        )
    for number, part in enumerate(objects(item.get("summary"))):
        at = {**place, "summary_index": number}
        yield from part_events("reasoning_summary_part", "reasoning_summary_text", part, at)
    if kind in SAID:
        (field,) = EMPTY[kind]
        yield from said_events(SAID[kind], field, item, place)
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def part_events(holder: str, kind: str, part: dict[str, Any], place: dict[str, Any]) -> Iterator[Event]:
    field = "refusal" if kind == "refusal" else "text"
    yield {"type": f"response.{holder}.added", **place, "part": {**part, field: ""}}
    yield from said_events(kind, field, part, place)
    yield {"type": f"response.{holder}.done", **place, "part": part}


def said_events(kind: str, field: str, holder: dict[str, Any], place: dict[str, Any]) -> Iterator[Event]:
    logs: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
    said = text_of(holder.get(field))
    yield {"type": f"response.{kind}.delta", **place, "delta": said, **logs}
    yield {"type": f"response.{kind}.done", **place, field: said, **logs}
