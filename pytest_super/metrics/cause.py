"""The cause of a miss: one of a closed list, by rules, from what the result of a trial says."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pytest_super.metrics.accuracy import answer_in
from pytest_super.metrics.script_executed import SCRIPT_EXECUTED
from pytest_super.store.results import TrialResult
from pytest_super.tasks.task import Task


class Cause(StrEnum):
    """The causes in the order of looking: the first that fits is the cause."""

    RAISED = "agent failed"
    GAVE_UP = "gave up"
    IN_SIGHT = "budget spent, answer in sight"
    SPENT = "budget spent"
    UNKNOWN = "the task has no answer yet"
    NOT_RUN = "script not run"
    VALUE = "wrong value"


def cause_of(task: Task, result: TrialResult, submission: Any) -> str:
    """Why the task is not solved; "" for a trial that is solved or not scored."""
    if result.solved or not result.is_scored:
        return ""
    # Not the member of the enumeration, because xdist sends plain texts alone.
    return (of_submission(task, result, submission) if result.submitted else without_submission(result)).value


def of_submission(task: Task, result: TrialResult, submission: Any) -> Cause:
    if task.answer_unknown:
        return Cause.UNKNOWN
    given = answer_in(task, submission) if result.text_read else submission
    if task.has_answer and task.answer is not None and given is None:
        return Cause.GAVE_UP
    return Cause.NOT_RUN if result.metrics.get(SCRIPT_EXECUTED.name) == 0.0 else Cause.VALUE


def without_submission(result: TrialResult) -> Cause:
    if result.stop_reason == "agent_error":
        return Cause.RAISED
    if result.stop_reason == "returned":
        return Cause.GAVE_UP
    found = [landmark["step"] is not None for landmark in result.landmarks_found]
    return Cause.IN_SIGHT if found and all(found) else Cause.SPENT
