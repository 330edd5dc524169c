"""The chance in a baseline, which all comparisons with it share, and drift between the runs in it."""

from collections.abc import Sequence
from math import sqrt

from pytest_super.gate.statistics.bounds import Difference
from pytest_super.gate.statistics.decision import chance_of_no_drop
from pytest_super.gate.statistics.samples import sample_of, shares_of
from pytest_super.gate.statistics.variance import noises_of

# One that is larger hides what a comparison asks for: even with endless trials of the candidate an unchanged
# agent passes in 95 % of runs only while the standard error of the baseline is below margin / 3.3.
MOST_OF_MARGIN = 0.3
# How rarely runs that have not drifted are said to have.
DRIFT = 0.05


def standard_error(values: Sequence[Sequence[float]], weights: Sequence[float]) -> float:
    """The standard error of the mean over tasks, by the trials of each; from 0 to 1."""
    run, shares = sample_of(values), shares_of(weights)
    return sqrt((shares**2 * noises_of(run, shares) / run.counts).sum())


def chance_of_no_drift(found: Difference) -> float:
    """The p-value of a difference between two runs of one agent, two-sided."""
    below = chance_of_no_drop(found)
    return 2 * min(below, 1 - below)
