"""Why the figures of a trial differ: the published from those of their own way, and the two ways."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_super.authoring.rescore.accuracy_reasons import accuracy_reasons
from pytest_super.authoring.rescore.judging import differ
from pytest_super.authoring.rescore.script_reasons import script_reasons, without_refusals
from pytest_super.metrics.reference import (
    ReferenceScoringError,
    reference_landmarks,
    reference_scores,
    reference_script_executed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.authoring.rescore.judging import Judgement
    from pytest_super.store.trajectory import Step


def reasons_for(metric: str, judgement: Judgement) -> Iterator[str]:
    """Why the figures of this metric differ; nothing where they do not."""
    figures = judgement.figures
    scoring, published = judgement.trial.scoring, judgement.trial.figures
    if metric in published and differ(published[metric], figures[scoring][metric]):
        yield f"not re-made from what is stored: {why_not_re_made(metric, judgement)}"
    if differ(figures["reference"][metric], figures["paper"][metric]):
        yield death(judgement) or "; ".join(BETWEEN_WAYS[metric](judgement))


def death(judgement: Judgement) -> str | None:
    """Of what the published scorer dies; None where it does not."""
    task = judgement.task
    try:
        reference_scores(
            judgement.reference_steps,
            answer=task.answer,
            landmarks=task.landmarks,
            entrypoint=task.entrypoint.path if task.entrypoint else None,
        )
    except ReferenceScoringError as error:
        return str(error)
    return None


def why_not_re_made(metric: str, judgement: Judgement) -> str:
    task, trial = judgement.task, judgement.trial
    if metric == "accuracy":
        return "the trial was scored against another answer, or another tolerance"
    if metric == "landmarks":
        recorded = [found["pattern"] for found in trial.landmarks_found]
        if trial.is_published or recorded != task.landmarks:
            return "the trial was scored by other landmarks"
        return "they were sought in what is not stored"
    assert task.entrypoint is not None
    without = without_refusals(judgement.reference_steps, task.entrypoint)
    if trial.scoring == "reference" and trial.figures[metric] == reference_script_executed(
        without, task.entrypoint.path
    ):
        return "it was made before refusals of arguments (`X: error`) counted as failures"
    return "the trial was scored with another entrypoint, or with a repository whose folder is not known here"


def between_accuracies(judgement: Judgement) -> Iterator[str]:
    task, trial = judgement.task, judgement.trial
    if trial.submit_step is not None and trial.submit_step.number != trial.steps[-1].number:
        yield "the published code knows a submission only as the last step"
    else:
        yield from accuracy_reasons(task.answer, trial.submission, tolerance=task.tolerance)


def between_landmarks(judgement: Judgement) -> Iterator[str]:
    """A reason for each way in which a pattern is hit by one alone, with how many are."""
    reasons: Counter[str] = Counter()
    steps = judgement.reference_steps
    for pattern, is_hit in zip(judgement.task.landmarks, judgement.landmarks, strict=True):
        showing = [step for step in steps if reference_landmarks([pattern], [step.observation])]
        if bool(showing) != is_hit:
            reasons[landmark_reason(showing)] += 1
    for reason, count in reasons.items():
        yield f"{count} of {len(judgement.task.landmarks)} landmarks {reason}"


def landmark_reason(showing: Sequence[Step]) -> str:
    """Of a landmark that only the published code finds, in the steps `showing`, or only the paper's way."""
    if not showing:
        return "in the output of a cell, but not as the agent was shown it"
    if all(step.origin != "agent" for step in showing):
        return "only in pre-executed steps"
    if all(step.action.type != "execute" for step in showing):
        return "only in what steps show that are no cells"
    return "in what the agent was shown, but not in the output of a cell"


def between_scripts(judgement: Judgement) -> Iterator[str]:
    entrypoint = judgement.task.entrypoint
    assert entrypoint is not None
    reference = judgement.figures["reference"]["script_executed"]
    steps = judgement.reference_steps
    return script_reasons(steps, entrypoint, judgement.repository, reference=reference)


BETWEEN_WAYS = {
    "accuracy": between_accuracies,
    "landmarks": between_landmarks,
    "script_executed": between_scripts,
}
