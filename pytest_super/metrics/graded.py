"""Graded: what the values of a task's grader yield, by default the portion of them that are right."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.metrics.checking import version_of
from pytest_super.metrics.evidence import Evidence, GradedValue
from pytest_super.metrics.metric import Metric

if TYPE_CHECKING:
    from pytest_super.tasks.task import Task


def of_trial(task: Task, evidence: Evidence) -> float | None:
    """Score a trial; None if it was stored without the values of its grader."""
    assert task.grade is not None
    return AGGREGATIONS[task.grade.aggregate](evidence.graded) if evidence.graded else None


def version(task: Task) -> int:
    assert task.grade is not None
    return version_of(check for command in task.grade.commands for check in command.checks)


def all_right(values: Sequence[GradedValue]) -> float:
    return float(all(value.score == 1 for value in values))


def portion_right(values: Sequence[GradedValue]) -> float:
    return fmean(value.score for value in values)


def mean_of_commands(values: Sequence[GradedValue]) -> float:
    commands = dict.fromkeys(value.command for value in values)
    return fmean(portion_right([one for one in values if one.command == name]) for name in commands)


AGGREGATIONS = {"all": all_right, "mean": mean_of_commands, "fraction": portion_right}

GRADED = Metric(
    name="graded", applies=lambda task: task.grade is not None, compute=of_trial, best=1.0, version=version
)
