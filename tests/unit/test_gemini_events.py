"""The pieces of Gemini's answers add up to them."""

from typing import Any

import pytest

from pytest_super.model.protocols.gemini.stream import has_part, whole
from pytest_super.model.protocols.protocol import StreamError

USAGE = {"usageMetadata": {"promptTokenCount": 3}}


def piece(*parts: Any, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"candidates": [{"index": index, "content": {"role": "model", "parts": list(parts)}, **fields}]}


def test_parts_are_joined_and_what_comes_last_counts() -> None:
    begun = {**piece({"text": "a"}, safetyRatings=[1]), "usageMetadata": {"promptTokenCount": 2}}
    ended = {**piece({"text": "b"}, finishReason="STOP"), **USAGE}
    body = whole([begun, piece({"text": "x"}, index=1, finishReason="STOP"), ended])
    assert body is not None
    one, other = body["candidates"]
    assert one["content"] == {"role": "model", "parts": [{"text": "ab"}]}
    assert (one["safetyRatings"], one["finishReason"]) == ([1], "STOP")
    assert other["content"]["parts"] == [{"text": "x"}]
    assert body["usageMetadata"] == USAGE["usageMetadata"]


def test_an_answer_without_a_reason_for_its_end_has_broken_off() -> None:
    assert whole([]) is None
    assert whole([piece({"text": "a"}), USAGE]) is None
    assert whole([piece({"text": "a"}, finishReason="STOP"), piece({"text": "a"}, index=1)]) is None


def test_a_candidate_may_have_no_content() -> None:
    body = whole([{"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": None}])
    assert body is not None
    assert body["candidates"] == [{"finishReason": "MAX_TOKENS"}]
    body = whole([piece({"text": "a"}), {"candidates": [{"finishReason": "STOP", "content": None}]}])
    assert body is not None
    assert body["candidates"][0]["content"]["parts"] == [{"text": "a"}]


def test_only_texts_of_one_kind_are_joined() -> None:
    parts = [
        {"text": "I ", "thought": True},
        {"text": "think", "thought": True},
        {"text": "a"},
        {"text": "", "thoughtSignature": "s"},
        {"functionCall": {"name": "f", "args": {}}},
        {"functionCall": {"name": "g", "args": {}}},
        {"text": "b"},
    ]
    body = whole([*map(piece, parts), piece(finishReason="STOP")])
    assert body is not None
    thought = {"text": "I think", "thought": True}
    assert body["candidates"][0]["content"]["parts"] == [thought, *parts[2:]]


def test_a_prompt_that_is_refused_has_no_answer() -> None:
    refused = {"promptFeedback": {"blockReason": "SAFETY"}, **USAGE}
    assert whole([refused]) == {**refused, "candidates": []}
    # Some prompts are only rated.
    assert whole([{"promptFeedback": {"safetyRatings": []}}]) is None


def test_an_error_is_one() -> None:
    with pytest.raises(StreamError):
        whole([piece({"text": "a"}), {"error": {"code": 503}}])


@pytest.mark.parametrize(
    ("event", "is_part"),
    [(USAGE, False), (piece(), False), (piece({"text": "a"}), True), (piece(finishReason="STOP"), True)],
)
def test_a_part_is_a_piece_of_content_or_the_end(event: dict[str, Any], is_part: bool) -> None:
    assert has_part(event) is is_part
