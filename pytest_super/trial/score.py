"""The score of a trial: what the metrics say of its trajectory and submission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.metrics.accuracy import accuracy
from pytest_super.metrics.reference import ReferenceScoringError, reference_scores
from pytest_super.metrics.script_executed import script_executed
from pytest_super.store.trajectory import PROGRAM_BESIDE

if TYPE_CHECKING:
    from pytest_super.metrics.landmarks import LandmarkMatcher
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task


METRICS = ("accuracy", "landmarks", "script_executed")


@dataclass(frozen=True, kw_only=True)
class Score:
    """A metric that does not apply to the task is None, and left out of means."""

    accuracy: float | None
    landmarks: float | None
    script_executed: float | None
    submitted: bool

    def solves(self, task: Task) -> bool:
        """Accuracy 1, or for the auto set, which has no gold answer, script_executed 1."""
        return (self.script_executed if task.set == "auto" else self.accuracy) == 1.0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a trial leaves to be judged."""

    steps: list[Step]
    submission: Any
    submitted: bool
    landmarks: LandmarkMatcher
    repository: str | None = None
    """Name of the folder in the working directory into which the repository was put."""


Scorer = Callable[["Task", Evidence], Score]


def score_as_paper(task: Task, evidence: Evidence) -> Score:
    """The metrics as the SUPER paper states them (sections 3.1.2 and 3.3.2)."""
    return Score(
        accuracy=accuracy_of(task, evidence),
        landmarks=evidence.landmarks.score,
        script_executed=script_executed(evidence.steps, task.entrypoint, repository=evidence.repository),
        submitted=evidence.submitted,
    )


def accuracy_of(task: Task, evidence: Evidence) -> float | None:
    if "answer" not in task.model_fields_set:
        return None
    if not evidence.submitted:
        return 0.0
    return accuracy(task.answer, evidence.submission, tolerance=task.tolerance)


def score_as_reference(task: Task, evidence: Evidence) -> Score:
    """The metrics as the published code computes them, its faults included, to re-make old numbers.

    Where that code dies on a trial no metric applies, which leaves the trial out of the means, as there.
    """
    # That code knows no programs; what one did beside the trial stands in the other steps.
    steps = [step for step in evidence.steps if step.action.type != PROGRAM_BESIDE]
    try:
        scores = reference_scores(
            steps,
            answer=task.answer,
            landmarks=task.landmarks,
            entrypoint=task.entrypoint.path if task.entrypoint else None,
        )
    except ReferenceScoringError:
        return Score(accuracy=None, landmarks=None, script_executed=None, submitted=evidence.submitted)
    return Score(
        accuracy=scores.accuracy,
        landmarks=scores.landmarks,
        script_executed=scores.script_executed,
        submitted=bool(scores.submitted),
    )


SCORERS: dict[str, Scorer] = {"paper": score_as_paper, "reference": score_as_reference}
