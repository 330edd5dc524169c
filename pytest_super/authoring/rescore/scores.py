"""Stored trials with their published figures, the figures of both ways of scoring, and why they differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_super.authoring.rescore.judging import judge
from pytest_super.authoring.rescore.reasons import reasons_for
from pytest_super.authoring.rescore.trials import MALFORMED, Figures
from pytest_super.errors import SuperError
from pytest_super.metrics.registry import PAPER
from pytest_super.report.text import words_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_super.authoring.rescore.trials import StoredTrial
    from pytest_super.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Difference:
    metric: str
    reasons: list[str]


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """A trial with its figures. A metric with nothing to compare with has only the published one."""

    trial: StoredTrial
    published: Figures
    reference: Figures = field(default_factory=dict)
    paper: Figures = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)


def rescore_all(trials: Sequence[StoredTrial], tasks: Mapping[str, Task]) -> tuple[list[Rescored], list[str]]:
    """The scored trials, and a message for each other one. Raises SuperError when no trial has a task."""
    if trials and not any(trial.task in tasks for trial in trials):
        some = ", ".join(sorted({trial.task for trial in trials})[:3])
        raise SuperError(f"neither --tasks nor --answers contains any of these tasks: {some}, …")
    rescored, broken = [], []
    for trial in trials:
        try:
            rescored.append(rescore(trial, tasks.get(trial.task)))
        except (SuperError, *MALFORMED) as error:
            broken.append(f"{trial.path} cannot be scored: {words_of(error)}")
    return rescored, broken


def rescore(trial: StoredTrial, task: Task | None) -> Rescored:
    """A trial with an infrastructure error, or of an unknown task, keeps only its published figures."""
    if task is None or trial.error is not None:
        return Rescored(trial=trial, published=trial.figures)
    judgement = judge(trial, task)
    found = [
        Difference(metric=metric, reasons=reasons)
        for metric in judgement.figures[PAPER]
        if (reasons := list(reasons_for(metric, judgement)))
    ]
    return Rescored(trial=trial, published=trial.figures, **judgement.figures, differences=found)
