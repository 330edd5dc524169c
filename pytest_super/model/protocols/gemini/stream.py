"""The events of Gemini's `streamGenerateContent`, added up to the answer of `generateContent`.

Source: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from pytest_super.model.protocols.protocol import StreamError, Tokens, count, latest, objects

if TYPE_CHECKING:
    from pytest_super.model.protocols.protocol import Body, Event

# The fields of a part that is nothing but text; other parts are whole.
TEXT = {"text", "thought"}


def has_part(event: Event) -> bool:
    return any(parts_of(each) or each.get("finishReason") for each in objects(event.get("candidates")))


def whole(events: list[Event]) -> Body | None:
    """The answer; None if the stream broke off. Raises StreamError."""
    # litellm reads no answer without it.
    body: Body = {"usageMetadata": {}}
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


def used(events: list[Event]) -> Tokens:
    """What the latest usage states: each is of all that has come."""
    usage = latest(events, "usageMetadata")
    said, thought = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    cached = count(usage.get("cachedContentTokenCount"))
    return Tokens(count(usage.get("promptTokenCount")), said + thought, cached)


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
    for name, value in (result.get("logprobsResult") or {}).items():
        # The probabilities of each piece's own tokens.
        if isinstance(value, list):
            stated = (piece.get("logprobsResult") or {} for piece in pieces)
            result["logprobsResult"][name] = [item for each in stated for item in each.get(name) or ()]
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
    content = candidate.get("content")
    return objects(content.get("parts")) if isinstance(content, dict) else []
