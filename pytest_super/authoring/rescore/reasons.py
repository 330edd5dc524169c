"""Short reasons why figures differ: the stored one from the computed one, or the two ways of scoring."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.reference import (
    ReferenceScoringError,
    reference_scores,
    reference_script_executed,
)
from pytest_super.metrics.script_executed import script_executed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.authoring.rescore.judging import Judgement
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Entrypoint

OTHERS = {
    "submitted": "the published code treats a submission that is empty, 0, false or null as missing",
    "accuracy": "the published code divides by the number of submitted values, takes a mean at each list and "
    "mapping, and has a fixed tolerance of 0.01",
    "landmarks": "the published code searches everything that the agent was shown, the paper's way only the "
    "outputs of the agent's cells",
    "script_executed": "the published code looks for the script's name, the paper's way for a run of it",
}


def reasons_for(metric: str, judgement: Judgement) -> Iterator[str]:
    """Why the figures of this metric differ; nothing when they are equal."""
    figures = judgement.figures
    scoring, stored = judgement.trial.scoring, judgement.trial.figures
    if metric in stored and differ(stored[metric], figures[scoring][metric]):
        yield "the stored figure does not follow from the stored steps and this task"
    if differ(figures["reference"][metric], figures["paper"][metric]):
        yield between_ways(metric, judgement)


def differ(one: float | None, other: float | None) -> bool:
    """Whether the figures differ by more than the order of summation can explain."""
    if one is None or other is None:
        return one is not other
    return not math.isclose(one, other, abs_tol=1e-9)


def between_ways(metric: str, judgement: Judgement) -> str:
    """Why the published code and the paper's way disagree."""
    if error := reference_error(judgement):
        return error
    submit_step = judgement.trial.submit_step
    if metric in ("accuracy", "submitted") and submit_step and submit_step is not judgement.trial.steps[-1]:
        return "the published code accepts a submission only as the last step"
    if metric == "script_executed":
        return script_reason(judgement) or OTHERS[metric]
    return OTHERS[metric]


def reference_error(judgement: Judgement) -> str | None:
    """The error of the published scorer on this trial; None when it gives a score."""
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


def script_reason(judgement: Judgement) -> str | None:
    """The steps that count as a run in one way only."""
    entrypoint, steps = judgement.task.entrypoint, judgement.reference_steps
    assert entrypoint is not None
    counted = [
        f"step {step.number}, which {what_it_lacks(step, entrypoint)}"
        for step in steps
        # A submission is not a run, and can end the published scorer.
        if step.action.type != "submit" and reference_script_executed([step], entrypoint.path) == 1.0
    ]
    if counted:
        return f"the published code counts {' and '.join(counted)}"
    for end, step in enumerate(steps, 1):
        if script_executed(steps[:end], entrypoint, repository=judgement.repository) == 1.0:
            return f"only the paper's way counts step {step.number} as a run"
    return None


def what_it_lacks(step: Step, entrypoint: Entrypoint) -> str:
    """The first condition of a run in the paper's way that the step does not meet."""
    if step.origin != "agent":
        return "was pre-executed"
    if step.action.type != "execute":
        return f"is of the type `{step.action.type}`"
    if step.outcome == Outcome.TIMED_OUT:
        return "was left running"
    if step.outcome != Outcome.OK:
        return f"ended as `{step.outcome}`"
    if step.seconds < entrypoint.min_seconds:
        return f"ran {step.seconds:.1f} s of at least {entrypoint.min_seconds:g}"
    return f"fails or does not run {entrypoint.path}"
