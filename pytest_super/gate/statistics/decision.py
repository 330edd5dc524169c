"""Better, worse, or cannot tell: what the bounds of a difference say about a margin."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final, Literal, TypeAlias

import numpy
from scipy.special import stdtr

from pytest_super.gate.statistics.bounds import LEVEL, Difference, Variance, quantile_of
from pytest_super.gate.statistics.difference import difference_of
from pytest_super.gate.statistics.samples import Numbers, Pair, Sample, sample_of, samples_of, shares_of
from pytest_super.gate.statistics.variance import (
    PRIOR_VARIANCE,
    between_tasks,
    loss_of,
    moderated,
    noise_of,
    noises_of,
    widening,
)

Verdict: TypeAlias = Literal["pass", "regressed", "cannot tell"]
PASS: Final = "pass"
REGRESSED: Final = "regressed"
CANNOT_TELL: Final = "cannot tell"
# How often a drop that is called detectable is found.
POWER = 0.8
# More further epochs than these are no advice.
MOST_EPOCHS = 100
# The drops for which a plan has chances.
STEP = 0.001


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a comparison can find, before its trials run."""

    detectable: float | None
    """The smallest drop for which 80 % of runs have the verdict `regressed`; None if there is none."""
    passes_unchanged: float
    """The share of runs in which an agent that has not changed passes."""

    def can_find(self, margin: float) -> bool:
        return self.detectable is not None and self.detectable <= margin


def verdict(found: Difference, margin: float, *, pass_level: float = LEVEL, level: float = LEVEL) -> Verdict:
    """`pass` if a drop of `margin` or more can be excluded, else `regressed` if there is a drop for sure.

    `pass_level` and `level` are the confidences at which the one and the other is sure.
    """
    if not found.is_small and found.bounds(pass_level)[0] > -margin:
        return PASS
    return REGRESSED if is_worse(found, level) else CANNOT_TELL


def is_worse(found: Difference, level: float) -> bool:
    """Whether there is a drop, at this confidence."""
    if found.is_small:
        return found.exact <= 1 - level
    return bool(found.bounds(level)[1] < 0)


def chance_of_no_drop(found: Difference) -> float:
    """The p-value of the difference, one-sided: how likely one as low is if nothing became worse."""
    by_bounds = float(stdtr(found.variance.freedom, found.value / sqrt(found.variance.value)))
    return found.exact if found.is_small else min(by_bounds, found.exact)


def epochs_to_decide(pairs: Sequence[Pair], margin: float, level: float = LEVEL) -> int | None:
    """How many further epochs of the candidate would decide if the means stayed as they are.

    `level` is that of both bounds. None if more than MOST_EPOCHS.
    """
    baseline, candidate = samples_of(pairs)
    shares = shares_of([pair.weight for pair in pairs])
    found = difference_of(baseline, candidate, shares)
    of_trial = found.variance.value / noise_of(baseline.counts, candidate.counts, shares)

    def decides(epochs: int) -> bool:
        longer = replace(candidate, counts=candidate.counts + epochs)
        own = Variance(
            value=of_trial * noise_of(baseline.counts, longer.counts, shares),
            freedom=found.variance.freedom + epochs * len(pairs),
        )
        expected = replace(
            found,
            variance=own,
            loss=loss_of(baseline, longer, shares),
            epochs=min(found.epochs + epochs, float(baseline.counts.max())),
        )
        return verdict(expected, margin, pass_level=level, level=level) != CANNOT_TELL

    # More epochs decide whatever fewer do: the bounds come only nearer to each other.
    epochs = bisect_left(range(MOST_EPOCHS + 1), True, lo=1, key=decides)
    return epochs if epochs <= MOST_EPOCHS else None


def plan(
    baseline: Sequence[Sequence[float]],
    weights: Sequence[float],
    *,
    epochs: Sequence[int],
    margin: float,
) -> Plan:
    """For a candidate with so many epochs of each of the baseline's tasks."""
    run, shares = sample_of(baseline), shares_of(weights)
    drops = numpy.arange(0.0, float(run.means @ shares) + STEP / 2, STEP, dtype=numpy.float64)
    passes, regressed = chances(run, shares, numpy.array(epochs, dtype=numpy.float64), drops, margin)
    found = numpy.flatnonzero(regressed >= POWER)
    return Plan(detectable=float(drops[found[0]]) if len(found) else None, passes_unchanged=float(passes[0]))


def epochs_to_detect(
    baseline: Sequence[Sequence[float]], weights: Sequence[float], *, margin: float
) -> int | None:
    """The fewest epochs of a candidate for which a drop of `margin` is detectable; None above MOST_EPOCHS."""

    def is_enough(epochs: int) -> bool:
        epochs_of = [epochs] * len(baseline)
        return plan(baseline, weights, epochs=epochs_of, margin=margin).can_find(margin)

    epochs = bisect_left(range(MOST_EPOCHS + 1), True, lo=1, key=is_enough)
    return epochs if epochs <= MOST_EPOCHS else None


def chances(
    baseline: Sample, shares: Numbers, epochs: Numbers, drops: Numbers, margin: float
) -> tuple[Numbers, Numbers]:
    """The chances of `pass` and of `regressed` for a candidate that is lower by each of `drops`."""
    found, true = expected(baseline, shares, epochs, drops)
    if found.is_small:
        return numpy.zeros_like(drops), numpy.zeros_like(drops)
    freedom = found.variance.freedom
    half = quantile_of(LEVEL, freedom) * numpy.sqrt(found.variance.value)
    of_loss = quantile_of(LEVEL, found.variance.seen) * sqrt(found.loss.variance(margin))
    # Values above the first pass, and those of the others that are below the second have regressed.
    passing = numpy.maximum(half, of_loss) - margin
    lower = numpy.minimum(passing, -half)
    deviation = numpy.sqrt(true)
    return stdtr(freedom, -(passing + drops) / deviation), stdtr(freedom, (lower + drops) / deviation)


def expected(
    baseline: Sample, shares: Numbers, epochs: Numbers, drops: Numbers
) -> tuple[Difference, Numbers]:
    """The differences to be expected, with the variances that will be estimated, and their true variances.

    A candidate is lower by a drop because it fails each of its successes with the same chance. A trial with
    the variance v and the mean m then has v·kept + m²·kept·(1 - kept).
    """
    noises = noises_of(baseline, shares)
    before = replace(baseline, variances=noises)
    kept = (1 - drops / max(float(baseline.means @ shares), STEP))[:, None]
    fixed = baseline.squares - noises
    after = Sample(
        counts=epochs,
        means=kept * baseline.means,
        squares=kept * baseline.squares,
        variances=numpy.maximum(kept * noises + kept * (1 - kept) * fixed, 0.0),
    )
    true = (shares**2 * (noises / before.counts + after.variances / epochs)).sum(-1)
    found = difference_of(before, after, shares)
    # What the tasks differ by is the drop, and noise.
    spread = between_tasks(after.means - before.means, shares)
    if (before.counts == 1).all() or (epochs == 1).all():
        prior = PRIOR_VARIANCE * noise_of(before.counts, epochs, shares)
        own = moderated(replace(spread, value=spread.value + true), prior)
    else:
        within = widening(shares) * found.variance.value
        own = replace(found.variance, value=numpy.maximum(within, spread.value + true))
    return replace(found, variance=own), true
