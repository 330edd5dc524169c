"""Graded: the portion of the values of a task's grader that are right."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.metrics.metric import Metric

if TYPE_CHECKING:
    from pytest_super.metrics.evidence import Evidence
    from pytest_super.tasks.task import Task


def has_grader(task: Task) -> bool:
    return task.grade is not None


def portion_right(_task: Task, evidence: Evidence) -> float | None:
    """The mean of the scores; None for a trial that was stored without them."""
    return fmean(value.score for value in evidence.graded) if evidence.graded else None


GRADED = Metric(name="graded", applies=has_grader, compute=portion_right, best=1.0)
