"""Tasks that a baseline has never solved: a comparison can do without them, as they cannot become worse.

Some of their trials would have been solved. How often follows from the tasks that were solved once (Good
1953, doi 10.1093/biomet/40.3-4.237): each of those trials found a task that was never solved in the others.
`benchmarks/never_solved.py` simulates how often verdicts are wrong then.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_super.gate.statistics.samples import shares_of

# Fewer trials do not show what is solved rarely.
LEAST_TRIALS = 10


@dataclass(frozen=True, kw_only=True)
class NeverSolved:
    """What is known of tasks with at least LEAST_TRIALS trials."""

    tasks: Sequence[int]
    """The places of those that were never solved."""
    rate: float
    """The value to be expected of each of their trials, from 0 to 1."""


def never_solved(baseline: Sequence[Sequence[float]], weights: Sequence[float]) -> NeverSolved:
    """Judge by the values of each task's trials."""
    shares = shares_of(weights)
    known = {place: values for place, values in enumerate(baseline) if len(values) >= LEAST_TRIALS}
    tasks = [place for place, values in known.items() if not any(values)]
    once = [place for place, values in known.items() if sum(value > 0 for value in values) == 1]
    missed = sum(float(shares[place]) * sum(known[place]) / len(known[place]) for place in once)
    return NeverSolved(tasks=tasks, rate=min(missed / float(shares[tasks].sum()), 1.0) if tasks else 0.0)
