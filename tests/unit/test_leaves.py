"""The values of an answer and their places."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_super.metrics.leaves import at, is_index, leaves, shown

ANSWER: dict[str, Any] = {"test": {"scores": [0.5, 0.25]}, "n": None, "none": [], "ok": True}
MISSING = object()


def test_the_values_of_an_answer_are_those_that_are_no_list_or_mapping() -> None:
    assert dict(leaves(ANSWER)) == {
        ("test", "scores", 0): 0.5,
        ("test", "scores", 1): 0.25,
        ("n",): None,
        ("ok",): True,
    }
    assert list(leaves(42)) == [((), 42)]


def test_each_value_is_at_its_place() -> None:
    assert all(at(ANSWER, place, MISSING) == value for place, value in leaves(ANSWER))


@pytest.mark.parametrize(
    "place",
    [("other",), ("test", "scores", 2), ("test", 0), ("n", 0), ("n", "x"), ("none", 0), ("test", "0")],
)
def test_where_there_is_no_value_there_is_what_stands_for_none(place: tuple[str | int, ...]) -> None:
    assert at(ANSWER, place, MISSING) is MISSING


def test_only_a_number_within_a_list_is_an_index() -> None:
    assert is_index(1, [1, 2])
    assert not any([is_index(2, [1, 2]), is_index("1", [1, 2]), is_index(0, {0: 1}), is_index(0, "text")])


@pytest.mark.parametrize(
    ("place", "text"), [((), "the answer"), (("test", "scores", 1), "test.scores[1]"), ((0, "a"), "[0].a")]
)
def test_a_place_is_shown_as_one_would_write_it(place: tuple[str | int, ...], text: str) -> None:
    assert shown(place) == text
