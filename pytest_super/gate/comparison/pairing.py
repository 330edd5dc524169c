"""Trials of a candidate that are paired with trials of its baseline: those of the same task and epoch.

They are, if the candidate got the recorded answers of the baseline: see docs/reference/answers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.gate.statistics.samples import Pair

if TYPE_CHECKING:
    from pytest_super.gate.comparison.side import Side, TaskTrials


def is_coupled(baseline: Side, candidate: Side) -> bool:
    return bool(candidate.answers) and candidate.answers == baseline.run


def pair_of(baseline: TaskTrials, candidate: TaskTrials, *, is_coupled: bool, is_run: bool = True) -> Pair:
    """The values of a task, those of paired trials first."""
    before, after = baseline.by_epoch, candidate.by_epoch
    both = [epoch for epoch in after if epoch in before] if is_coupled and is_run else []
    return Pair(
        baseline=first(baseline.values, [before[epoch] for epoch in both]),
        candidate=first(candidate.values, [after[epoch] for epoch in both]),
        weight=candidate.weight,
        is_run=is_run,
        paired=len(both),
    )


def first(values: list[float], places: list[int]) -> list[float]:
    """The values at these places, then the others."""
    chosen = set(places)
    return [
        *(values[place] for place in places),
        *(v for place, v in enumerate(values) if place not in chosen),
    ]
