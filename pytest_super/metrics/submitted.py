"""Submitted: whether the agent submitted an answer, right or wrong."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_super.metrics.metric import Metric

if TYPE_CHECKING:
    from pytest_super.metrics.evidence import Evidence
    from pytest_super.tasks.task import Task


def submitted(_task: Task, evidence: Evidence) -> float:
    return float(evidence.submitted)


SUBMITTED = Metric(name="submitted", compute=submitted, reference=attrgetter("submitted"), best=1.0)
