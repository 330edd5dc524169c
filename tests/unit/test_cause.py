"""Why a trial has not solved its task, by rules."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.metrics.accuracy import accuracy
from pytest_super.metrics.cause import Cause, cause_of
from pytest_super.store.results import TrialResult
from pytest_super.tasks.task import Task

NUMBERS = st.floats(0.05, 1e6).map(lambda value: round(value, 4))
SPENT = ("compute", "wall", "tokens", "cost", "steps", "context")


def task(answer: Any, **fields: Any) -> Task:
    return Task.model_validate({"id": "t", "set": "expert", "query": "q", "answer": answer, **fields})


def result(**fields: Any) -> TrialResult:
    known = {"stop_reason": "submitted", "submitted": True, "headline": "accuracy", **fields}
    metrics = {"accuracy": 0.0, **fields.get("metrics", {})}
    return TrialResult(id="t", set="expert", epoch=1, rerun=0, agent="a", **{**known, "metrics": metrics})


def submitted(answer: Any, submission: Any, **fields: Any) -> str:
    return cause_of(task(answer), result(**fields), submission)


@pytest.mark.parametrize(
    ("answer", "submission", "cause"),
    [
        (61.04, 61, "rounded value"),
        (0.61, 0.6, "wrong value"),
        (12.5, 12, "rounded value"),
        ({"f1": 61.04, "em": 17.45}, {"f1": 61, "em": 17.5}, "rounded value"),
        ({"f1": 61.04, "em": 17.45}, {"f1": 61, "em": 18.5}, "wrong value"),
        (1234, 1200, "wrong value"),
        (0.614, 61.4, "other unit"),
        (61.4, 0.614, "other unit"),
        ({"acc": 0.614, "f1": 0.5}, {"acc": 61.4, "f1": 50}, "other unit"),
        ({"acc": 0.614, "f1": 0.5}, {"acc": 61.4, "f1": 0.7}, "wrong value"),
        (90, 1.5, "other unit"),
        (0.002, 50, "wrong value"),
        ({"acc": 0.5, "f1": 0.7}, {"accuracy": 0.5, "macro_f1": 0.7}, "other key"),
        ({"acc": 0.5, "f1": 0.5}, {"accuracy": 0.5}, "wrong value"),
        ({"test": {"acc": 0.5}}, {"acc": 0.5}, "other key"),
        (0.5, {"accuracy": 0.5}, "other format"),
        (61.4, "61.4 %", "other format"),
        (1234, "1,234", "other format"),
        ({"a": 1, "b": 2}, '{"a": 1, "b": 2}', "other format"),
        ("Paris", "paris", "other format"),
        (-1234.5, "-1,234.5", "other format"),
        ([1, 2, 3], "1,2,3", "wrong value"),
        ({"a": 1, "b": True}, {"x": True, "y": 1}, "other key"),
        ([1, 2], [[1], [2]], "other format"),
        (0.5, True, "wrong value"),
        (0.5, None, "gave up"),
        (0.5, float("nan"), "wrong value"),
    ],
)  # fmt: skip
def test_a_wrong_submission_has_the_cause_that_explains_all_of_it(
    answer: Any, submission: Any, cause: str
) -> None:
    assert submitted(answer, submission) == cause


@given(NUMBERS, st.integers(0, 3))
def test_a_right_value_that_is_rounded_is_never_another_value(value: float, digits: int) -> None:
    rounded = round(value, digits)
    if accuracy(value, rounded) < 1 and rounded >= 10:
        assert submitted(value, rounded) == Cause.ROUNDED


@given(NUMBERS, st.sampled_from([100, 1000, 60, 1024, 1 / 100, 1 / 60]))
def test_a_right_value_in_another_unit_is_told(value: float, factor: float) -> None:
    if accuracy(value, value * factor) < 1:
        assert submitted(value, value * factor) in (Cause.UNIT, Cause.ROUNDED)


def test_a_submission_of_any_depth_has_a_cause() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert submitted(1, deep) == Cause.VALUE
    assert submitted({"a": 0.5}, [[None], "x", float("nan")]) == Cause.VALUE


def test_a_wrong_value_without_a_run_of_the_script_is_caused_by_that() -> None:
    assert submitted(0.5, 0.9, metrics={"script_executed": 0.0}) == Cause.NOT_RUN
    assert submitted(0.5, 0.9, metrics={"script_executed": 1.0}) == Cause.VALUE
    # The right value in another form did not come from nothing.
    assert submitted(0.5, "0.5", metrics={"script_executed": 0.0}) == Cause.FORMAT


@pytest.mark.parametrize("stop", SPENT)
def test_a_spent_budget_is_told_apart_by_landmarks(stop: str) -> None:
    def cause(*steps: int | None) -> str:
        found = [{"pattern": "x", "step": step} for step in steps]
        one = result(stop_reason=stop, submitted=False, landmarks_found=found)
        return cause_of(task(0.5), one, None)

    assert cause(3, 7) == Cause.IN_SIGHT
    assert cause(3, None) == cause() == Cause.SPENT


def test_an_agent_that_ends_without_a_submission_gave_up_or_failed() -> None:
    assert cause_of(task(1), result(stop_reason="returned", submitted=False), None) == Cause.GAVE_UP
    assert cause_of(task(1), result(stop_reason="agent_error", submitted=False), None) == Cause.RAISED


@pytest.mark.parametrize(
    "fields", [{"solved": True}, {"error": "no kernel"}, {"stop_reason": "interrupted", "submitted": False}]
)
def test_what_is_solved_or_not_scored_has_no_cause(fields: dict[str, Any]) -> None:
    assert cause_of(task(0.5), result(**fields), 0.5) == ""
