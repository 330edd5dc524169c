"""How the trials of both runs ended, and why they did not solve their tasks."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import TYPE_CHECKING

from pytest_super.gate.comparison.side import TaskTrials, summed

if TYPE_CHECKING:
    from pytest_super.gate.comparison.comparison import Comparison

Shares = list[tuple[str, float, float]]
"""Of both sides' trials, by what they have in common."""


def changed_stops(comparison: Comparison) -> Shares:
    """The stop reasons with a notably different share of the trials."""
    before, after = (summed(task.stops for task in side) for side in sides_of(comparison))
    return changed_shares(before, after)


def causes(comparison: Comparison) -> Shares:
    """The causes of misses, the most frequent first; none if those of a side are not known."""
    sides = sides_of(comparison)
    before, after = counts = [summed(task.causes for task in side) for side in sides]
    misses = [sum(value < 1 for task in side for value in task.values) for side in sides]
    if any(known.total() < number for number, known in zip(misses, counts, strict=True)):
        return []
    old, new = (sum(len(task.values) for task in side) for side in sides)
    shares = [(cause, before[cause] / old, after[cause] / new) for cause in before | after]
    return sorted(shares, key=lambda one: (-max(one[1:]), one[0]))


def sides_of(comparison: Comparison) -> tuple[list[TaskTrials], list[TaskTrials]]:
    ran = comparison.ran
    return [task.baseline for task in ran], [task.candidate for task in ran]


def changed_shares(before: Counter[str], after: Counter[str]) -> Shares:
    """Find shares that differ by 5 points or more, and by more than chance does in 99 % of comparisons."""
    found = []
    sizes = before.total(), after.total()
    for reason in sorted(before | after) if all(sizes) else ():
        shares = before[reason] / sizes[0], after[reason] / sizes[1]
        whole = (before[reason] + after[reason]) / sum(sizes)
        deviation = sqrt(whole * (1 - whole) * (1 / sizes[0] + 1 / sizes[1]))
        if abs(shares[1] - shares[0]) >= max(0.05, 2.58 * deviation):
            found.append((reason, *shares))
    return found
