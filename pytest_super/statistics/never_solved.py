"""Tasks that a baseline has never solved: a comparison can leave them out, as they cannot become worse.

Zeros in place of their trials would be too low, since some of them would have been solved. How often follows
from the tasks that the baseline has solved once (Good 1953, doi 10.1093/biomet/40.3-4.237).
`benchmarks/never_solved.py` simulates how often verdicts are wrong then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_super.statistics.difference import shares_of

if TYPE_CHECKING:
    from collections.abc import Sequence

# Fewer epochs do not show what is solved rarely.
LEAST_EPOCHS = 10
# A candidate with more epochs than this part of the baseline's would be surer than what is put in place.
MOST_OF_BASELINE = 1 / 3


@dataclass(frozen=True, kw_only=True)
class NeverSolved:
    """What can be left out."""

    tasks: list[int] = field(default_factory=list)
    """Their places in the baseline."""
    value: float = 0.0
    """What stands in place of each of their trials."""


def never_solved(
    baseline: Sequence[Sequence[float]], weights: Sequence[float], *, epochs: int
) -> NeverSolved:
    """For a candidate with so many epochs. Nothing can be left out by a baseline of too few epochs for it."""
    least = min(map(len, baseline))
    tasks = [place for place, values in enumerate(baseline) if not any(values)]
    if not tasks or least < LEAST_EPOCHS or epochs > MOST_OF_BASELINE * least:
        return NeverSolved()
    shares = shares_of(weights)
    solved_once = [place for place, values in enumerate(baseline) if sum(value > 0 for value in values) == 1]
    missed = sum(shares[place] * sum(baseline[place]) / len(baseline[place]) for place in solved_once)
    return NeverSolved(tasks=tasks, value=min(float(missed / sum(shares[tasks])), 1.0))
