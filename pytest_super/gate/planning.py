"""What a comparison can find, and how many epochs it needs, by the noise of the baseline's trials alone.

Epochs by the candidate's own results would turn chance into verdicts.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, pi, sqrt

import numpy
from scipy.special import ndtr, ndtri, stdtr

from pytest_super.gate.difference import Difference, difference_of
from pytest_super.gate.looks import confidences
from pytest_super.gate.samples import (
    LEVEL,
    PRIOR_VARIANCE,
    Numbers,
    Sample,
    between_tasks,
    completed,
    mixed,
    moderated,
    noise_of,
    quantile_of,
    satterthwaite,
    trust_in,
)

# Nobody is advised to run more epochs than these.
MOST_EPOCHS = 100
# How often a drop that is called detectable is found.
POWER = 0.8
# The drops for which a plan has chances.
STEP = 0.001
# The variance of solved and not solved, if each rate from 0 to 1 is equally likely.
EXPECTED_VARIANCE = 1 / 6


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The schedule of one set. A look comes after each epoch from the least number on."""

    epochs: list[int]
    """The most epochs of each task."""
    least: int
    """The epochs before the first look."""
    variances: list[float]
    """Of the difference, at each look."""
    is_enough: bool
    """Whether an unchanged agent passes by the last look with the chance that was asked for."""

    @property
    def fractions(self) -> list[float]:
        """The part of the last look's information that each look has."""
        return [self.variances[-1] / one for one in self.variances]

    def confidences(self, level: float = LEVEL) -> list[float]:
        """The confidences of a one-sided bound at each look."""
        return confidences(self.fractions, level)

    def expected(self, margin: float) -> list[float]:
        """The epochs of each task to expect of an agent that has not changed."""
        deviations = numpy.sqrt(self.variances)
        passes = ndtr(margin / deviations - ndtri(self.confidences()))
        # Whether a further epoch begins, which it does unless one of the looks before has decided.
        begins = [1.0] * self.least + list(1 - numpy.maximum.accumulate(passes))
        return [fsum(begins[:epochs]) for epochs in self.epochs]


def schedule(baseline: Sample, *, least: int, most: int, margin: float, pass_chance: float) -> Schedule:
    """Plan no more epochs than excluding a drop of `margin` needs, and `least` to `most` a task.

    `pass_chance` is how often the last look shall exclude it, if the agent has not changed.
    """
    noises = widening(baseline.shares) * noises_of(baseline)
    quantiles = sum(quantile_of(level, baseline.counts.sum()) for level in (LEVEL, pass_chance))
    fewest = max(least, min(most, 2))  # a single trial does not show the noise of its task
    parts = baseline.shares * numpy.sqrt(noises)
    for top in range(fewest, most + 1):
        # In proportion to each task's part in the error (Neyman 1934), without the last bits of the quotient.
        epochs = numpy.maximum(fewest, numpy.ceil(numpy.round(top * parts / parts.max(), 6)))
        is_enough = quantiles * sqrt(noise_of(baseline, epochs, noises)) <= margin
        if is_enough:
            break
    by_look = [
        float(noise_of(baseline, numpy.minimum(epochs, look), noises))
        for look in range(least, int(epochs.max()) + 1)
    ]
    return Schedule(epochs=[int(one) for one in epochs], least=least, variances=by_look, is_enough=is_enough)


@dataclass(frozen=True, kw_only=True)
class Power:
    """What a comparison can find, before its trials run."""

    detectable: float | None
    """The smallest drop for which 80 % of runs have the verdict `regressed`; None if there is none."""
    passes_unchanged: float
    """The share of runs in which an agent that has not changed passes."""

    def can_find(self, margin: float) -> bool:
        return self.detectable is not None and self.detectable <= margin


def power(baseline: Sample, epochs: Sequence[int], margin: float) -> Power:
    """Tell what a candidate with so many epochs of each of the baseline's tasks finds."""
    mean = float(baseline.means @ baseline.shares)
    drops = numpy.arange(0.0, mean + STEP / 2, STEP, dtype=numpy.float64)
    passes, regressed = chances(baseline, numpy.array(epochs, dtype=numpy.float64), drops, margin)
    found = numpy.flatnonzero(regressed >= POWER)
    return Power(detectable=float(drops[found[0]]) if len(found) else None, passes_unchanged=float(passes[0]))


def epochs_to_detect(baseline: Sample, margin: float) -> int | None:
    """The fewest epochs of a candidate for which a drop of `margin` is detectable; None above MOST_EPOCHS."""

    def is_enough(epochs: int) -> bool:
        return power(baseline, [epochs] * len(baseline.counts), margin).can_find(margin)

    epochs = bisect_left(range(MOST_EPOCHS + 1), True, lo=1, key=is_enough)
    return epochs if epochs <= MOST_EPOCHS else None


def chances(baseline: Sample, epochs: Numbers, drops: Numbers, margin: float) -> tuple[Numbers, Numbers]:
    """The chances of `pass` and of `regressed` for a candidate that is lower by each of `drops`."""
    found, true = expected(baseline, epochs, drops)
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


def expected(baseline: Sample, epochs: Numbers, drops: Numbers) -> tuple[Difference, Numbers]:
    """The differences to be expected, with the variances that will be estimated, and their true variances.

    A candidate is lower by a drop because it fails each of its successes with the same chance. A trial with
    the variance v and the mean m then has v·kept + m²·kept·(1 - kept).
    """
    noises, shares = noises_of(baseline), baseline.shares
    before = replace(baseline, variances=noises)
    kept = (1 - drops / max(float(baseline.means @ shares), STEP))[:, None]
    fixed = baseline.squares - noises
    after = Sample(
        counts=epochs,
        means=kept * baseline.means,
        squares=kept * baseline.squares,
        variances=numpy.maximum(kept * noises + kept * (1 - kept) * fixed, 0.0),
        shares=shares,
    )
    true = (shares**2 * (noises / before.counts + after.variances / epochs)).sum(-1)
    found = difference_of(before, after)
    # What the tasks differ by is the drop, and noise.
    spread = between_tasks(after.means - before.means, shares)
    if (before.counts == 1).all() or (epochs == 1).all():
        prior = PRIOR_VARIANCE * noise_of(before, epochs)
        own = moderated(replace(spread, value=spread.value + true), prior)
    else:
        within = widening(shares) * found.variance.value
        own = replace(found.variance, value=numpy.maximum(within, spread.value + true))
    return replace(found, variance=own), true


def widening(shares: Numbers) -> float:
    """Tell by how much the widest estimate is larger than the noise, on average, if trials share nothing.

    That between n tasks has a standard deviation of √(2 / (n - 1)), and only counts where it is too large.
    """
    return 1 + 1 / sqrt(pi * max(1 / float(shares @ shares) - 1, 1))


def noises_of(run: Sample) -> Numbers:
    """Each task's variance to plan with. Few trials tell little, so the mean of all tasks counts, too.

    Without repeats, half of the variance of all values is taken to be between the trials of a task.
    """
    single = run.counts == 1
    if single.any() and not single.all():
        noises = numpy.zeros(len(single))
        for part in (single, ~single):
            noises[part] = noises_of(run.part(part))
        return noises
    whole = float(run.squares @ run.shares - (run.means @ run.shares) ** 2)
    usual = mixed(trust_in(len(single) - 1), whole / 2, EXPECTED_VARIANCE)
    if single.all():
        return numpy.full(len(single), usual)
    variances, freedoms = completed(run)
    parts = run.shares**2 / run.counts
    alone = mixed(trust_in(freedoms), variances, usual)
    total = mixed(trust_in(satterthwaite(parts, freedoms)), parts @ variances, parts.sum() * usual)
    return numpy.asarray(alone * total / (parts @ alone))


def standard_error(run: Sample) -> float:
    """The standard error of the mean over tasks, by the trials of each; from 0 to 1."""
    return sqrt((run.shares**2 * noises_of(run) / run.counts).sum())
