"""Landmarks (SUPER, 3.1.2): the portion of a task's patterns that match the output of the agent's cells."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.metric import Metric

if TYPE_CHECKING:
    from pytest_super.tasks.task import Task


def portion_hit(task: Task, evidence: Evidence) -> float:
    return sum(landmark.is_hit for landmark in evidence.landmarks) / len(task.landmarks)


LANDMARKS = Metric(
    name="landmarks",
    applies=lambda task: bool(task.landmarks),
    compute=portion_hit,
    reference=attrgetter("landmarks"),
    best=1.0,
)
