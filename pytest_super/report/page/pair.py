"""Two runs next to each other: the tasks that flipped, the verdicts, and the trials of one task."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.gates.next_steps import compared_lines
from pytest_super.report.comparison import HEADS, row_of
from pytest_super.report.page.stored import GOING_ON
from pytest_super.statistics import require_scipy
from pytest_super.store.json_lines import UNREADABLE
from pytest_super.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from pytest_super.comparison.comparison import Comparison
    from pytest_super.comparison.side import Side
    from pytest_super.report.page.stored import ShownRun, ShownTrial

# As `pytest-super compare` has it by default.
MARGIN = 0.10


@dataclass(frozen=True, kw_only=True)
class TaskPair:
    """One task in both runs: means of its headline metric, None in a run without a valid trial of it."""

    id: str
    set: str
    baseline: float | None
    candidate: float | None
    flip: str = ""
    """`lost` or `won`; "" if it did not flip or cannot be compared."""

    @property
    def change(self) -> float | None:
        if self.baseline is None or self.candidate is None:
            return None
        return self.candidate - self.baseline


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What the page of two runs shows."""

    tasks: list[TaskPair]
    heads: Sequence[str] = HEADS
    sets: list[list[str]] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    trouble: str = ""
    """Why the runs cannot be compared."""

    @property
    def flips(self) -> list[TaskPair]:
        return [one for one in self.tasks if one.flip]


@dataclass(frozen=True, kw_only=True)
class TaskSide:
    """The trials of one task in one run."""

    name: str
    others: list[tuple[str, ShownTrial]]
    """Address and trial of each."""
    body: Markup | None
    """The detail of the first one."""


def pair_of(baseline: ShownRun, candidate: ShownRun) -> Pair:
    try:
        compared = comparison_of(baseline, candidate)
    except SuperError as error:
        return Pair(tasks=tasks_of(baseline, candidate, {}), trouble=words_of(error))
    flips = {task.id: task.flip for task in compared.flips}
    return Pair(
        tasks=tasks_of(baseline, candidate, flips),
        sets=[row_of(one) for one in compared.sets],
        verdicts=list(compared_lines(compared)),
    )


def comparison_of(baseline: ShownRun, candidate: ShownRun) -> Comparison:
    """Of what can be read. Raises SuperError if nothing can be compared, or without scipy."""
    require_scipy()
    from pytest_super.comparison.comparison import compare

    return compare(side_of_shown(baseline), side_of_shown(candidate), MARGIN)


def side_of_shown(run: ShownRun) -> Side:
    """Raises SuperError if a result has figures that no trial has."""
    from pytest_super.comparison.side import side_of, why

    try:
        return side_of(run.name, {}, run.ended)
    except UNREADABLE as error:
        raise SuperError(f"the run {run.name} cannot be compared: {why(error)}") from None


def tasks_of(baseline: ShownRun, candidate: ShownRun, flips: dict[str, str]) -> list[TaskPair]:
    """Flips first, then the largest changes."""
    means = [means_of(one) for one in (baseline, candidate)]
    sets = {one.result.id: one.result.set for run in (baseline, candidate) for one in run.trials}
    found = [
        TaskPair(
            id=id, set=name, baseline=means[0].get(id), candidate=means[1].get(id), flip=flips.get(id, "")
        )
        for id, name in sets.items()
    ]
    return sorted(found, key=lambda one: (not one.flip, one.flip, -abs(one.change or 0.0), one.id))


def means_of(run: ShownRun) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for one in run.trials:
        value = one.result.headline_value
        if one.outcome != GOING_ON and value is not None:
            values.setdefault(one.result.id, []).append(value)
    return {id: fmean(known) for id, known in values.items()}


def trials_of(run: ShownRun, id: str) -> list[ShownTrial]:
    """By epoch."""
    return sorted((one for one in run.trials if one.result.id == id), key=lambda one: one.result.epoch)
