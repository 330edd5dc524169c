"""Trials of a candidate that are paired with trials of its baseline, and the noise of their differences.

A paired trial got the recorded answers of its partner until its first different request, so both share their
luck until then. `benchmarks/paired.py` simulates how often the bounds are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from pytest_super.gate.statistics.samples import Numbers

# Equal pairs do not prove that no pair can differ: what is not seen in a number of independent pairs is rarer
# than 3 divided by this number (Hanley and Lippman-Hand 1983, doi 10.1001/jama.1983.03330370053031).
RULE_OF_THREE = 3.0


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """The pairs of trials, by task. All but the counts are arbitrary numbers where a task has none."""

    counts: Numbers
    means: Numbers
    """Of the differences, candidate minus baseline."""
    squares: Numbers
    """The means of the squared differences."""
    differing: Numbers
    """The share of the pairs that differ."""

    def of_counts(self, baseline: Numbers, candidate: Numbers) -> Pairs:
        """Give each task a pair for each trial that both sides have; the share that differs stays."""
        counts = numpy.where(self.counts > 0, numpy.minimum(baseline, candidate), 0.0)
        return replace(self, counts=counts)

    def units(self, shares: Numbers) -> Numbers:
        """How much of the whole one pair of each task is."""
        return numpy.where(self.counts > 0, shares / numpy.maximum(self.counts, 1), 0.0)

    def further(self, shares: Numbers) -> Any:
        """The variance of one further pair that differs, with the weight of the heaviest one.

        With one, a drop is as sure as by a sign test: five losses of five show it. For how large a
        difference can be, two count. With the four degrees of freedom of the prior, equal pairs then have the
        bound of the rule of three: 2.13 · √2 = 3.01.
        """
        return self.units(shares).max() ** 2

    def noise(self, shares: Numbers) -> tuple[Any, Any]:
        """The variance of the mean difference of the tasks with pairs, and its degrees of freedom.

        The squares are those of the differences themselves, not of their distances from the mean: a single
        pair of a task counts, too, and a drop that is in few pairs makes the variance larger, never smaller.
        Most pairs are equal, so the degrees of freedom go by the number of pairs that differ.
        """
        counts = numpy.maximum(self.counts, 1)
        parts = self.units(shares) ** 2 * counts * self.squares
        seen = parts.sum(-1)
        of_squares = (parts**2 / numpy.maximum(counts * self.differing, 1)).sum(-1)
        # The variance of few differences is skewed: so many of them tell half as much.
        freedom = seen**2 / numpy.maximum(of_squares, 1e-300) / 2
        return seen + self.further(shares), freedom

    def least(self, trials: float) -> Any:
        """The bound of the rule of three if no pair differs, times the share of trials that have a pair.

        Where some differ, the differences between trials show that there is noise, and how much.
        """
        no_pair_differs = (self.counts * self.differing).sum(-1) == 0
        return no_pair_differs * RULE_OF_THREE * self.counts.sum() / trials**2


def pairs_of(differences: Sequence[Sequence[float]]) -> Pairs | None:
    """Sum up the differences of each task's pairs; None if no task has a pair."""
    if not any(differences):
        return None
    some = [values or [0.0] for values in differences]
    return Pairs(
        counts=numpy.array([float(len(values)) for values in differences]),
        means=numpy.array([fmean(values) for values in some]),
        squares=numpy.array([fmean(value**2 for value in values) for values in some]),
        differing=numpy.array([fmean(value != 0 for value in values) for values in some]),
    )
