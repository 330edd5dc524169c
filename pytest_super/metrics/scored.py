"""What a trial's evidence decides about its result, when it has ended and whenever it is scored again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_super.metrics.difference import difference
from pytest_super.metrics.registry import is_solved, score
from pytest_super.metrics.script_executed import entrypoint_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.metrics.evidence import Evidence
    from pytest_super.metrics.metric import Metric
    from pytest_super.tasks.task import Task


def scored(metrics: Sequence[Metric], task: Task, evidence: Evidence, scoring: str) -> dict[str, Any]:
    """The scores among the fields of a result. `scoring` is one of the SCORINGS. Raises as `score` does."""
    scores = score(metrics, task, evidence, scoring=scoring)
    run = entrypoint_run(task, evidence)
    return {
        "metrics": scores,
        "landmarks_found": [asdict(landmark) for landmark in evidence.landmarks],
        "entrypoint_process": None if run is None else {**asdict(run.process), "script": run.script},
        "graded": [asdict(value) for value in evidence.graded],
        "solved": is_solved(metrics, task, scores, scoring=scoring),
        "difference": wrong_values(task, evidence),
    }


def wrong_values(task: Task, evidence: Evidence) -> str:
    if not evidence.submitted or not task.has_answer:
        return ""
    return difference(task.answer, evidence.submission, task.tolerance)
