"""The values of an answer and their places."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_super.metrics.leaves import leaves, shown

ANSWER: dict[str, Any] = {"test": {"scores": [0.5, 0.25]}, "n": None, "none": [], "ok": True}


def test_the_values_of_an_answer_are_those_that_are_no_list_or_mapping() -> None:
    assert dict(leaves(ANSWER)) == {
        ("test", "scores", 0): 0.5,
        ("test", "scores", 1): 0.25,
        ("n",): None,
        ("ok",): True,
    }
    assert list(leaves(42)) == [((), 42)]


@pytest.mark.parametrize(
    ("place", "text"), [((), "the answer"), (("test", "scores", 1), "test.scores[1]"), ((0, "a"), "[0].a")]
)
def test_a_place_is_shown_as_one_would_write_it(place: tuple[str | int, ...], text: str) -> None:
    assert shown(place) == text
