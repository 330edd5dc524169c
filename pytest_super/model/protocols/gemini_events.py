"""The events of Gemini's `streamGenerateContent`, added up to the answer of `generateContent`.

Source: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.model.protocols.protocol import StreamError, Tokens, count, objects

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
    candidates: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.get("error"):
            raise StreamError(event)
        body |= {name: value for name, value in event.items() if value is not None}
        for part in objects(event.get("candidates")):
            index = part.get("index") or 0
            candidates[index] = joined(candidates.get(index, {}), part)
    has_reasons = all(each.get("finishReason") for each in candidates.values())
    # A prompt that is refused has no answer.
    is_refused = "blockReason" in (body.get("promptFeedback") or {})
    if not (has_reasons if candidates else is_refused):
        return None
    return {**body, "candidates": [candidates[index] for index in sorted(candidates)]}


def used(events: list[Event]) -> Tokens | None:
    """What the latest usage states: each is of all that has come."""
    stated = [event["usageMetadata"] for event in events if isinstance(event.get("usageMetadata"), dict)]
    if not stated:
        return None
    usage = stated[-1]
    said, thought = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    cached = count(usage.get("cachedContentTokenCount"))
    return Tokens(count(usage.get("promptTokenCount")), said + thought, cached)


def joined(candidate: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A candidate with its next part. The parts of contents are joined, and the fields of other objects."""
    part = {name: value for name, value in part.items() if value is not None}
    result = {**candidate, **part}
    for name, value in part.items():
        if isinstance(value, dict):
            result[name] = {**(candidate.get(name) or {}), **value}
    if parts := [*parts_of(candidate), *parts_of(part)]:
        result["content"]["parts"] = with_texts_joined(parts)
    # The probabilities of each part's own tokens.
    if "logprobsResult" in result:
        old, new = candidate.get("logprobsResult") or {}, part.get("logprobsResult") or {}
        names = {**old, **new}
        result["logprobsResult"] = {name: [*old.get(name, ()), *new.get(name, ())] for name in names}
    return result


def with_texts_joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for part in parts:
        is_text = "text" in part and part.keys() <= TEXT
        if is_text and result and part.keys() == result[-1].keys():
            result[-1] = {**part, "text": result[-1]["text"] + part["text"]}
        else:
            result.append(part)
    return result


def parts_of(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    content = candidate.get("content")
    return objects(content.get("parts")) if isinstance(content, dict) else []
