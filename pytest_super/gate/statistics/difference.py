"""The difference between two runs on the same tasks, and its bounds.

The tasks are fixed, so all noise is that between trials of one task (Miller 2024, arXiv 2411.00640).
`benchmarks/coverage.py` simulates how often the bounds are right.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy

from pytest_super.gate.statistics.bounds import Difference, Loss, Variance
from pytest_super.gate.statistics.pairs import Pairs, pairs_of
from pytest_super.gate.statistics.samples import Numbers, Pair, Sample, dot, samples_of, shares_of
from pytest_super.gate.statistics.variance import (
    PRIOR_FREEDOM,
    loss_of,
    sum_of,
    variance_of,
    variance_of_part,
    with_drift,
)


def difference(pairs: Sequence[Pair], drift: float = 0.0) -> Difference:
    """Estimate the difference from at least one pair; `drift` is as for `difference_of`."""
    baseline, candidate = samples_of(pairs)
    shares = shares_of([pair.weight for pair in pairs])
    return difference_of(baseline, candidate, shares, drift, pairs_of([pair.differences for pair in pairs]))


def difference_of(
    baseline: Sample, candidate: Sample, shares: Numbers, drift: float = 0.0, pairs: Pairs | None = None
) -> Difference:
    """Estimate the difference from at least one task.

    `drift` is the standard deviation of what changes a whole run, such as a model that its provider replaces
    behind its name: trials cannot show it, so whoever knows it states it.

    With pairs there are two differences: that of all trials, as if none were paired, and that of the pairs
    alone, whose noise is only that of the pairs that differ. The one with the narrower interval counts.
    """
    of_trials = difference_of_trials(baseline, candidate, shares, drift)
    return of_trials if pairs is None else with_pairs(of_trials, baseline, candidate, shares, drift, pairs)


def with_pairs(
    of_trials: Difference, baseline: Sample, candidate: Sample, shares: Numbers, drift: float, pairs: Pairs
) -> Difference:
    """Choose the difference of all trials, or that of the pairs if it is surer."""
    of_trials = replace(of_trials, least=pairs.least(float(candidate.counts.sum())))
    value, own, rest = difference_of_pairs(baseline, candidate, shares, pairs)
    of_pairs = replace(
        of_trials,
        value=value,
        variance=with_drift(own, drift),
        further=pairs.further(shares),
        loss=loss_of(baseline, candidate, rest),
        gain=loss_of(candidate, baseline, rest),
    )
    return surer(of_pairs, of_trials)


def difference_of_trials(baseline: Sample, candidate: Sample, shares: Numbers, drift: float) -> Difference:
    own = variance_of(baseline, candidate, shares)
    return Difference(
        value=dot(candidate.means - baseline.means, shares),
        variance=with_drift(own, drift),
        loss=loss_of(baseline, candidate, shares),
        gain=loss_of(candidate, baseline, shares),
        tasks=float(1 / (shares**2).sum()),
        epochs=float(min(baseline.counts.max(), candidate.counts.max())),
        unseen=dot(candidate.means * (1 - candidate.is_run), shares),
    )


def difference_of_pairs(
    baseline: Sample, candidate: Sample, shares: Numbers, pairs: Pairs
) -> tuple[Any, Variance, Numbers]:
    """The value, its variance, and the shares of the tasks without pairs, of which all trials count."""
    has_pairs = pairs.counts > 0
    value, freedom = pairs.noise(shares)
    own = Variance(value=value, freedom=freedom + PRIOR_FREEDOM, seen=freedom + PRIOR_FREEDOM)
    if not has_pairs.all():
        own = sum_of(own, variance_of_part(baseline, candidate, shares, ~has_pairs))
    differences = numpy.where(has_pairs, pairs.means, candidate.means - baseline.means)
    return dot(differences, shares), own, numpy.where(has_pairs, 0.0, shares)


def surer(one: Difference, other: Difference) -> Difference:
    """The one with the narrower interval at LEVEL, whatever the level of a later question is.

    Nearly equal widths are those of equal pairs. These say that there is no difference, so the first counts.
    """
    is_one = width_of(one) < 1.01 * width_of(other)
    return replace(
        other,
        value=either(is_one, one.value, other.value),
        variance=either(is_one, one.variance, other.variance),
        further=either(is_one, one.further, other.further),
        loss=either(is_one, one.loss, other.loss),
        gain=either(is_one, one.gain, other.gain),
    )


def width_of(found: Difference) -> Any:
    lower, upper = found.bounds()
    return upper - lower


def either(is_one: Any, one: Any, other: Any) -> Any:
    """Choose for each comparison the number of the one or of the other, or all numbers of a part."""
    if not isinstance(one, Variance | Loss):
        return numpy.where(is_one, one, other)[()]
    numbers = {name: either(is_one, number, getattr(other, name)) for name, number in vars(one).items()}
    return type(one)(**numbers)
