"""The lines that a verdict against a baseline says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import TYPE_CHECKING

from pytest_super.gate.errors import MAX_ERRORS
from pytest_super.words import counted

if TYPE_CHECKING:
    from pytest_super.gate.comparison import Comparison, SetComparison
    from pytest_super.gate.difference import Verdict

VERDICTS: Mapping[Verdict, str] = {
    "pass": "PASS",
    "cannot tell": "CANNOT TELL",
    "regressed": "REGRESSED",
}
"""In this order, because the last line is read first."""
# From so many points on, tenths tell nothing.
LARGE = 10


def decided_lines(comparison: Comparison) -> Iterator[str]:
    """A line for the verdict on each set, the worst last; or only why nothing is decided."""
    if (side := comparison.too_many_errors) is not None:
        yield (
            f"{VERDICTS['cannot tell']}  {sum(side.errors.values())} of {side.trials} trials of {side.name} "
            f"are infrastructure errors, more than {100 * MAX_ERRORS:.3g} %"
        )
        return
    for word in VERDICTS:
        yield from (of_set(one, comparison.margin) for one in comparison.sets if one.verdict == word)


def of_set(one: SetComparison, margin: float) -> str:
    if one.is_same:
        trials = counted(sum(len(task.candidate.values) for task in one.ran), "trial")
        return (
            f"PASS  {one.set}: all {trials} got the baseline's answers throughout and ended as its trials did"
        )
    if one.difference.is_small and one.verdict == "cannot tell":
        # Twenty tasks often rule out a drop of ten points.
        needed = ceil(20 * (0.1 / margin) ** 2)
        tasks = counted(len(one.tasks), "task")
        return f"NO COLLAPSE  {one.set}: {tasks} can show no more (a pass needs about {needed})"
    low, high = map(points_of, one.difference.bounds(one.level))
    points = points_of(one.difference.value)
    line = f"{VERDICTS[one.verdict]}  {one.set} {points} points ({low} to {high}), limit -{100 * margin:g}"
    if one.hidden is not None:
        line += f"; {VERDICTS[one.hidden]} if the trials with infrastructure errors are left out"
    elif one.further:
        line += f"; about {counted(one.further, 'more epoch')} needed"
    return line


def points_of(difference: float) -> str:
    """Write as few digits as tell something."""
    points = 100 * difference
    return f"{points:+.0f}" if abs(points) >= LARGE else f"{points:+.1f}"
