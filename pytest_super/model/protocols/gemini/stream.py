"""The events of Gemini's `streamGenerateContent`, added up to the answer of `generateContent`, and back.

Source: https://ai.google.dev/api/generate-content
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from pytest_super.json_values import object_in, objects
from pytest_super.model.protocols.protocol import Body, Event, Request, StreamError, Tokens, count, pieces

# The fields of a part that is nothing but text; other parts are whole.
TEXT = {"text", "thought"}


def replay(body: Body, request: Request) -> Iterator[Event]:  # noqa: ARG001
    """A whole answer as the events of its stream. Each has a part; only the last has an end and a usage."""
    rest = {name: value for name, value in body.items() if name not in ("candidates", "usageMetadata")}
    for candidate in objects(body.get("candidates")):
        for part in parts_of(candidate):
            for piece in pieces_of(part):
                content = {"role": "model", "parts": [piece]}
                yield {**rest, "candidates": [{"content": content, "index": candidate.get("index") or 0}]}
    ends = [{**each, "content": {"role": "model", "parts": []}} for each in objects(body.get("candidates"))]
    yield {**body, "candidates": ends}


def pieces_of(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if text_fields(part) and isinstance(part["text"], str):
        yield from ({**part, "text": piece} for piece in pieces(part["text"]))
    else:
        yield part


def has_part(event: Event) -> bool:
    return any(parts_of(each) or each.get("finishReason") for each in objects(event.get("candidates")))


def whole(events: list[Event]) -> Body | None:
    """The answer; None if the stream broke off. Raises StreamError."""
    body: Body = {}
    pieces: dict[int, list[dict[str, Any]]] = {}
    for event in events:
        if event.get("error"):
            raise StreamError(event)
        body |= {name: value for name, value in event.items() if value is not None}
        for piece in objects(event.get("candidates")):
            pieces.setdefault(piece.get("index") or 0, []).append(piece)
    candidates = [joined(pieces[index]) for index in sorted(pieces)]
    has_reasons = all(each.get("finishReason") for each in candidates)
    # A prompt that is refused has no answer.
    is_refused = "blockReason" in (body.get("promptFeedback") or {})
    if not (has_reasons if candidates else is_refused):
        return None
    return {**body, "candidates": candidates}


def tokens(usage: Any) -> Tokens:
    """What a usage says. Those of a stream are each of all that has come."""
    thought = count(usage.get("thoughtsTokenCount"))
    return Tokens(
        prompt=count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount")),
        completion=count(usage.get("candidatesTokenCount")) + thought,
        cached=count(usage.get("cachedContentTokenCount")),
        thought=thought,
    )


def joined(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """A candidate. The parts of its contents are joined, and the fields of other objects."""
    result: dict[str, Any] = {}
    for piece in pieces:
        for name, value in piece.items():
            if isinstance(value, dict):
                result[name] = {**(result.get(name) or {}), **value}
            elif value is not None:
                result[name] = value
    if parts := [part for piece in pieces for part in parts_of(piece)]:
        result["content"]["parts"] = with_texts_joined(parts)
    return result


def with_texts_joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for fields, group in groupby(parts, key=text_fields):
        run = list(group)
        result += [{**run[-1], "text": "".join(part["text"] for part in run)}] if fields else run
    return result


def text_fields(part: dict[str, Any]) -> frozenset[str]:
    """The fields of a part that is nothing but text; none for others."""
    return frozenset(part) if "text" in part and part.keys() <= TEXT else frozenset()


def parts_of(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    return objects(object_in(candidate, "content").get("parts"))
