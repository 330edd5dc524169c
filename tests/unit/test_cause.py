"""Why a trial has not solved its task, by rules."""

from typing import Any

import pytest

from pytest_super.metrics.cause import Cause, cause_of
from pytest_super.store.results import TrialResult
from pytest_super.tasks.task import Task

SPENT = ("compute", "wall", "tokens", "cost", "steps", "context")


def task(answer: Any, **fields: Any) -> Task:
    return Task.model_validate({"id": "t", "set": "expert", "query": "q", "answer": answer, **fields})


def result(**fields: Any) -> TrialResult:
    known = {"stop_reason": "submitted", "submitted": True, "headline": "accuracy", **fields}
    metrics = {"accuracy": 0.0, **fields.get("metrics", {})}
    return TrialResult(id="t", set="expert", epoch=1, rerun=0, agent="a", **{**known, "metrics": metrics})


def submitted(answer: Any, submission: Any, **fields: Any) -> str:
    return cause_of(task(answer), result(**fields), submission)


@pytest.mark.parametrize("submission", [0.9, "0.5", True, float("nan"), {"a": [None]}])
def test_a_wrong_value_without_a_run_of_the_script_is_caused_by_that(submission: Any) -> None:
    assert submitted(0.5, submission, metrics={"script_executed": 0.0}) == Cause.NOT_RUN
    assert submitted(0.5, submission, metrics={"script_executed": 1.0}) == Cause.VALUE
    assert submitted(0.5, None) == Cause.GAVE_UP


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
