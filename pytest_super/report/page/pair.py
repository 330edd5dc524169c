"""Two runs next to each other: the verdict, and the means of each task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.gate import require_scipy
from pytest_super.gate.side import Side
from pytest_super.report.page.stored import GOING_ON, ShownRun
from pytest_super.store.json_lines import UNREADABLE, damage
from pytest_super.words import words_of

if TYPE_CHECKING:
    from pytest_super.gate.comparison import Comparison

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
    is_red: bool = False
    """Whether it is a loss in a set that has regressed."""

    @property
    def change(self) -> float | None:
        if self.baseline is None or self.candidate is None:
            return None
        return self.candidate - self.baseline


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What the page of two runs shows."""

    tasks: list[TaskPair]
    """Flips first."""
    verdict: str = ""
    """That on all sets; "" if the runs cannot be compared."""
    heads: Sequence[str] = ()
    sets: list[list[str]] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    trouble: str = ""
    """Why the runs cannot be compared."""


def pair_of(baseline: ShownRun, candidate: ShownRun) -> Pair:
    tasks = tasks_of(baseline, candidate)
    try:
        require_scipy()
        from pytest_super.gate.comparison import compare

        compared = compare(side_of_shown(baseline), side_of_shown(candidate), MARGIN)
    except SuperError as error:
        return Pair(tasks=tasks, trouble=words_of(error))
    # They need scipy, which pages of one run do without.
    from pytest_super.report.comparison import HEADS, row_of
    from pytest_super.report.comparison_notes import compared_lines

    return Pair(
        tasks=list(flipped(tasks, compared)),
        verdict=str(compared.verdict),
        heads=HEADS,
        sets=[row_of(one) for one in compared.sets],
        verdicts=list(compared_lines(compared)),
    )


def side_of_shown(run: ShownRun) -> Side:
    """Raises SuperError if a result has figures that no trial has."""
    from pytest_super.gate.side import side_of

    try:
        return side_of(run.name, {}, run.ended)
    except UNREADABLE as error:
        raise SuperError(f"the run {run.name} cannot be compared: {damage(error)}") from None


def flipped(tasks: Sequence[TaskPair], compared: Comparison) -> Iterator[TaskPair]:
    """The tasks with their flips, which come first."""
    regressed = {one.set for one in compared.sets if one.verdict == "regressed"}
    flips = {task.id: task.flip for task in compared.flips}
    for one in sorted(tasks, key=lambda one: flips.get(one.id, "z")):
        flip = flips.get(one.id, "")
        yield replace(one, flip=flip, is_red=flip == "lost" and one.set in regressed)


def tasks_of(baseline: ShownRun, candidate: ShownRun) -> list[TaskPair]:
    """The largest changes first."""
    means = [means_of(one) for one in (baseline, candidate)]
    sets = {one.result.id: one.result.set for run in (baseline, candidate) for one in run.trials}
    found = [
        TaskPair(id=id, set=name, baseline=means[0].get(id), candidate=means[1].get(id))
        for id, name in sets.items()
    ]
    return sorted(found, key=lambda one: (-abs(one.change or 0.0), one.id))


def means_of(run: ShownRun) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for one in run.trials:
        value = one.result.headline_value
        if one.outcome != GOING_ON and value is not None:
            values.setdefault(one.result.id, []).append(value)
    return {id: fmean(known) for id, known in values.items()}
