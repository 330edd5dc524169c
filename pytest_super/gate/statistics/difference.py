"""The difference between two runs on the same tasks, and its bounds.

The tasks are fixed, so the noise is that between trials of one task (Miller 2024, arXiv 2411.00640), unless
trials of one run, or of one repository in an epoch, share their luck: then the noise is larger, and shows
between tasks and between epochs. The widest estimate counts. `benchmarks/coverage.py` simulates how often the
bounds are right.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import comb, fsum, inf

import numpy

from pytest_super.gate.statistics.errors import ROUNDING
from pytest_super.gate.statistics.samples import Numbers, Pair, Sample, dot, samples_of, shares_of
from pytest_super.gate.statistics.variance import LEVEL, Variance, quantile_of, variance_of

# With fewer tasks than these (weights counted) and fewer epochs than these in a run, bounds decide nothing:
# one noisy task would be called worse, or no worse, by chance in 7 % of runs.
LEAST_TASKS, LEAST_EPOCHS = 4, 4
# Of fewer tasks than these, the differences tell little about the noise.
FEW_TASKS = 8
# Sums that are equal to so many digits are taken together: without that, there could be millions.
DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The noise of a run that fails each success of a better one with the same chance."""

    mean: float
    """Of the better run."""
    noise: float
    """The variance of the worse run's mean is this, times the chance, times its complement."""

    def variance(self, loss: float) -> float:
        """The variance of the worse run's mean, if it is lower by `loss`."""
        chance = min(loss / self.mean, 1.0) if self.mean else 1.0
        return self.noise * chance * (1 - chance)

    def largest(self, gap: float, quantile: float) -> float:
        """The largest loss that this noise can make look like a gain of `gap`; minus infinity if none can.

        It solves (gap + loss)² = quantile² · variance: the bound of a score test, which is Wilson's for
        a better run that never fails (Wilson 1927, doi 10.2307/2276774).
        """
        mean = numpy.maximum(self.mean, 1e-12)
        part = quantile**2 * self.noise / mean
        middle, outer = part - 2 * gap, 1 + part / mean
        below_root = middle**2 - 4 * outer * gap**2
        found = (middle + numpy.sqrt(numpy.maximum(below_root, 0))) / (2 * outer)
        return numpy.where((below_root >= 0) & (found > 0), found, -inf)  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Candidate minus baseline, as the mean over tasks."""

    value: float
    variance: Variance
    loss: Loss = Loss(mean=1.0, noise=0.0)
    """If the candidate is the worse run."""
    gain: Loss = Loss(mean=1.0, noise=0.0)
    """If the baseline is."""
    tasks: float = inf
    """How many tasks of equal weight tell as much (Kish 1965): 1 / Σ share²."""
    epochs: float = inf
    """Of the run that has fewer."""
    exact: float = 1.0
    """The p-value of a drop by an exact test, where there are few tasks and epochs."""
    unseen: float = 0.0
    """How much lower the candidate can be by tasks that were not run."""

    @property
    def is_small(self) -> bool:
        """Whether there are so few tasks and epochs that bounds decide nothing."""
        return self.tasks < LEAST_TASKS - ROUNDING and self.epochs < LEAST_EPOCHS

    @property
    def has_few(self) -> bool:
        """Whether an exact test of the trials can show a drop that the bounds miss."""
        return self.tasks < FEW_TASKS and self.epochs < LEAST_EPOCHS

    def bounds(self, level: float = LEVEL) -> tuple[float, float]:
        """The lower and the upper one-sided bound.

        The estimated noise alone would be too small where trials rarely fail: a run without a failure seems
        to have none. So the bounds also include each loss and gain whose own noise explains the value. The
        lower one is also that of a candidate which solves none of the tasks that were not run. The upper one
        is below 0 where an exact test of few tasks shows a drop.
        """
        if level == 1:
            return -1.0, 1.0
        half = self.variance.half_width(level)
        quantile = quantile_of(level, self.variance.seen)
        lower = numpy.minimum(self.value - half, -self.loss.largest(self.value, quantile)) - self.unseen
        upper = numpy.maximum(self.value + half, self.gain.largest(-self.value, quantile))
        upper = numpy.where(self.exact <= 1 - level, numpy.minimum(upper, -ROUNDING), upper)
        return numpy.maximum(lower, -1.0), numpy.minimum(upper, 1.0)


def difference(pairs: Sequence[Pair]) -> Difference:
    """Estimate the difference from at least one pair."""
    found = difference_of(*samples_of(pairs), shares_of([pair.weight for pair in pairs]))
    return replace(found, exact=chance_of_drop(pairs)) if found.has_few else found


def difference_of(baseline: Sample, candidate: Sample, shares: Numbers) -> Difference:
    """Estimate the difference from at least one task."""
    return Difference(
        value=dot(candidate.means - baseline.means, shares),
        variance=variance_of(baseline, candidate, shares),
        loss=loss_of(baseline, candidate, shares),
        gain=loss_of(candidate, baseline, shares),
        tasks=float(1 / (shares**2).sum()),
        epochs=float(min(baseline.counts.max(), candidate.counts.max())),
        unseen=dot(candidate.means * (1 - candidate.is_run), shares),
    )


def loss_of(better: Sample, worse: Sample, shares: Numbers) -> Loss:
    return Loss(mean=dot(better.means, shares), noise=dot(better.squares, shares**2 / worse.counts))


def chance_of_drop(pairs: Sequence[Pair]) -> float:
    """How likely a difference as low as that of these tasks is, if nothing has changed.

    By all ways to divide each task's trials between both runs: at its level whatever the values, where trials
    are independent (Pitman 1937, doi 10.2307/2984124).
    """
    whole = fsum(pair.weight for pair in pairs)
    found = fsum(pair.weight * pair.difference for pair in pairs) / whole
    chances = {0.0: 1.0}
    for pair in pairs:
        sums: defaultdict[float, float] = defaultdict(float)
        for (one, chance), (other, its_chance) in product(
            chances.items(), differences_of(pair, pair.weight / whole).items()
        ):
            sums[round(one + other, DIGITS)] += chance * its_chance
        chances = sums
    # What is rounded counts against the drop.
    return fsum(chance for value, chance in chances.items() if value <= found + len(pairs) * 10.0**-DIGITS)


def differences_of(pair: Pair, share: float) -> dict[float, float]:
    """The chance of each difference of one task, times its share, if its trials are divided at random."""
    values = [*pair.baseline, *pair.candidate]
    number, size, total = len(values), len(pair.candidate), fsum(values)
    # By how many are chosen and their sum: the number of ways.
    ways: Counter[tuple[int, float]] = Counter({(0, 0.0): 1})
    for value, times in Counter(values).items():
        further: Counter[tuple[int, float]] = Counter()
        for (chosen, so_far), count in ways.items():
            for more in range(min(times, size - chosen) + 1):
                further[chosen + more, round(so_far + more * value, 9)] += count * comb(times, more)
        ways = further
    chances: dict[float, float] = {}
    for (chosen, so_far), count in ways.items():
        if chosen == size:
            difference = so_far / size - (total - so_far) / (number - size)
            chances[share * difference] = count / comb(number, size)
    return chances
