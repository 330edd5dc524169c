"""The events of Gemini's `streamGenerateContent`, added up to the answer of `generateContent`.

Source: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.model.protocols.protocol import StreamError, objects

if TYPE_CHECKING:
    from pytest_super.model.protocols.protocol import Body, Event


def has_part(event: Event) -> bool:
    return any(parts_of(each) or each.get("finishReason") for each in objects(event.get("candidates")))


def whole(events: list[Event]) -> Body | None:
    """The answer; None if the stream broke off. Raises StreamError."""
    body: Body = {}
    candidates: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.get("error"):
            raise StreamError(event)
        body |= event
        for part in objects(event.get("candidates")):
            add(candidates.setdefault(part.get("index") or 0, {}), part)
    has_reasons = all(each.get("finishReason") for each in candidates.values())
    # A prompt that is refused has no answer.
    is_refused = "blockReason" in (body.get("promptFeedback") or {})
    if not (has_reasons if candidates else is_refused):
        return None
    return {**body, "candidates": [candidates[index] for index in sorted(candidates)]}


def add(candidate: dict[str, Any], part: dict[str, Any]) -> None:
    """Add the parts of a content to those that have come; other fields are replaced."""
    content = {**(candidate.get("content") or {}), **(part.get("content") or {})}
    content["parts"] = [*parts_of(candidate), *parts_of(part)]
    candidate |= {**part, "content": content}


def parts_of(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    content = candidate.get("content")
    return objects(content.get("parts")) if isinstance(content, dict) else []
