import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.metrics.accuracy import accuracy, difference, is_right
from pytest_super.metrics.leaves import MISSING, leaves, value_at

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.text(max_size=4)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("gold", "submission", "score"),
    [
        ({"acc": 0.6, "f1": 0.75}, {"acc": 0.6}, 0.5),
        ({"acc": 0.6, "f1": 0.75}, {"acc": 0.6, "f1": 0.75, "x": 1, "y": 2}, 1.0),
        ({"acc": 0.6, "f1": 0.75}, {"acc": 0.6, "f1": 0.75, "zzz": None}, 1.0),
        ([1, 2, 3, 4], [1], 0.25),
        ([1, 2], [1, 2, 3, 4], 1.0),
        ([{"id": i, "acc": 0.5} for i in range(10)], [{"id": 0, "acc": 0.5}], 0.1),
        ({"test": {"em": 1.0, "f1": 2.0}}, {"test": {"em": 1.0}}, 0.5),
        ({"lone": 1, "group": {"x": 1, "y": 2, "z": 3}}, {"group": {"x": 1, "y": 2, "z": 3}}, 0.75),
    ],
)
def test_the_score_is_the_portion_of_gold_values_answered(gold: Any, submission: Any, score: float) -> None:
    assert accuracy(gold, submission) == score


@pytest.mark.parametrize(
    ("gold", "near", "far"),
    [(0.60, 0.61, 0.6100001), (1.0, 0.99, 0.9899), (-0.005, 0.005, 0.0050001), (10**30, 10**30, 10**30 + 1)],
)
def test_numbers_are_right_up_to_and_with_the_tolerance(gold: float, near: float, far: float) -> None:
    assert accuracy(gold, near) == 1.0
    assert accuracy(near, gold) == 1.0
    assert accuracy(gold, far) == 0.0


def test_a_task_may_set_its_own_absolute_tolerance() -> None:
    assert accuracy([1.0, 2.0], [1.1, 2.1001], tolerance=0.1) == 0.5
    assert accuracy([1, 2.0], [1, 2.0], tolerance=0) == 1.0
    assert accuracy(1e-3, 0, tolerance=0) == 0.0


@pytest.mark.parametrize(
    ("gold", "submission"),
    [
        (math.nan, math.nan), (math.inf, math.inf), (-math.inf, -math.inf), (None, None), (True, True),
        (False, False), ("", ""), (0, 0.0), (0, -0.0), ("yes", " yes\n"), (10**400, 10**400), (3, 3.0),
    ],
)  # fmt: skip
def test_a_scalar_gold_is_one_leaf_that_its_equal_answers(gold: Any, submission: Any) -> None:
    assert accuracy(gold, submission) == 1.0


@pytest.mark.parametrize(
    ("gold", "submission"),
    [
        (1, True), (True, 1), (0, False), (False, 0), (0.5, "0.5"), ("0.5", 0.5), ("yes", "Yes"), (None, 0),
        (0, None), (None, False), ("None", None), (math.inf, -math.inf), (math.nan, 0.0), (1e308, math.inf),
        (10**400, math.inf), (10**400, 1.0), (1.0, [1.0]), (1.0, {"a": 1.0}), ([1.0], 1.0),
        ({"0": 1.0}, [1.0]), ([1.0], {"0": 1.0}), ("ab", ["a", "b"]), (["a", "b"], "ab"),
    ],
)  # fmt: skip
def test_nothing_is_converted(gold: Any, submission: Any) -> None:
    assert accuracy(gold, submission) == 0.0


@pytest.mark.parametrize("gold", [{}, [], {"a": {}}, [[], {"b": []}]])
def test_an_empty_list_or_mapping_is_a_value_that_only_its_equal_is_right_for(gold: Any) -> None:
    assert accuracy(gold, gold) == 1.0
    others: list[Any] = [None, 0, "", False, [1], {"x": 1}, {"a": []}, [{}, {"b": {}}]]
    assert {accuracy(gold, other) for other in others} == {0.0}


@pytest.mark.parametrize(
    ("submission", "score", "wrong"),
    [
        ({"n": 3, "failures": []}, 1.0, ""),
        ({"n": 3}, 0.5, "failures is missing, not []"),
        ({"n": 3, "failures": {}}, 0.5, "failures is {}, not []"),
        ({"n": 3, "failures": [1]}, 0.5, "failures is a list, not []"),
    ],
)
def test_an_empty_list_among_other_values_is_compared(submission: Any, score: float, wrong: str) -> None:
    gold = {"failures": [], "n": 3}
    assert accuracy(gold, submission) == score
    assert difference(gold, submission, 0.01) == wrong


def test_a_number_as_a_key_is_found_as_json_writes_it() -> None:
    gold = {"1e-5": {"10": 0.5, "20": 0.6}, "0.10": 2, "v1": 3}
    submission = json.loads(json.dumps({1e-5: {10: 0.5, 20.0: 0.6}, 0.1: 2, "v1.0": 3}))
    assert accuracy(gold, submission) == 0.75
    assert difference(gold, submission, 0.01) == "v1 is missing, not 3"


def nested(depth: int, leaf: object) -> object:
    value = leaf
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def test_nesting_deeper_than_the_stack_is_scored() -> None:
    depth = 12_000
    assert accuracy(nested(depth, 1), nested(depth, 1)) == 1.0
    assert accuracy(nested(depth, 1), nested(depth, 2)) == 0.0
    assert accuracy(nested(depth, 1), nested(depth - 1, 1)) == 0.0


@given(gold=JSON, submission=JSON)
def test_any_json_gets_a_score_from_0_to_1(gold: Any, submission: Any) -> None:
    score = accuracy(gold, submission)
    assert 0.0 <= score <= 1.0


@given(gold=JSON, other=JSON, data=st.data())
def test_a_value_that_is_removed_or_replaced_makes_an_answer_worse(gold: Any, other: Any, data: Any) -> None:
    found = list(leaves(gold))
    place, leaf = data.draw(st.sampled_from(found))
    assert accuracy(gold, without(gold, place)) < 1.0 or not place
    if not is_right(leaf, other, 0.01):
        # Whatever is put in its place, also inside an empty list or mapping.
        assert accuracy(gold, put(gold, place, other)) == pytest.approx(1 - 1 / len(found))


def put(value: Any, place: Any, new: Any) -> Any:
    """A copy with another value at a place."""
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = put(value[place[0]], place[1:], new)
    return copy


def without(value: Any, place: Any) -> Any:
    """A copy without the value at a place, and in a list also without those after it."""
    if not place:
        return None
    *outer, last = place
    parent: Any = value_at(value, tuple(outer))
    rest = {key: child for key, child in parent.items() if key != last} if isinstance(parent, dict) else None
    changed = put(value, tuple(outer), parent[:last] if rest is None else rest)
    assert value_at(changed, place) is MISSING
    return changed


@given(gold=JSON, submission=JSON, extra=JSON)
def test_extra_keys_change_nothing(gold: Any, submission: Any, extra: Any) -> None:
    assert accuracy(gold, grown(submission, extra)) == accuracy(gold, submission)


def grown(value: Any, extra: Any) -> Any:
    """The value with one more key in every mapping that is not empty, which no gold has."""
    if isinstance(value, dict) and value:
        return {**{key: grown(child, extra) for key, child in value.items()}, "more than four": extra}
    return [grown(child, extra) for child in value] if isinstance(value, list) else value


def test_a_single_value_is_right_by_the_same_rules() -> None:
    assert is_right(0.6, 0.61, 0.01)
    assert not is_right(0.6, 0.62, 0.01)
    assert not is_right("1", 1, 0.01)
