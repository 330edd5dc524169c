"""The difference between two runs on the same tasks, its bounds, and what these say about a margin.

The tasks are fixed, so the noise is that between trials of one task (Miller 2024, arXiv 2411.00640), unless
trials of one run, or of one repository in an epoch, share their luck: then the noise is larger, and shows
between tasks and between epochs. The widest estimate counts. `benchmarks/coverage.py` simulates how often the
bounds are right.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import comb, fsum, inf, sqrt
from typing import Final, Literal, TypeAlias

import numpy
from scipy.special import stdtr

from pytest_super.gate import CANNOT_TELL
from pytest_super.gate.errors import ROUNDING
from pytest_super.gate.samples import LEVEL, Pair, Sample, Variance, dot, quantile_of, samples_of, variance_of

Verdict: TypeAlias = Literal["pass", "regressed", "cannot tell"]
PASS: Final = "pass"
REGRESSED: Final = "regressed"

Confidence: TypeAlias = "Callable[[str, int], float]"
"""How sure each one-sided bound of a set must be, if so many sets share the error."""

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
    found = difference_of(*samples_of(pairs))
    return replace(found, exact=chance_of_drop(pairs)) if found.has_few else found


def difference_of(baseline: Sample, candidate: Sample) -> Difference:
    """Estimate the difference from at least one task."""
    shares = baseline.shares
    return Difference(
        value=dot(candidate.means - baseline.means, shares),
        variance=variance_of(baseline, candidate),
        loss=loss_of(baseline, candidate),
        gain=loss_of(candidate, baseline),
        tasks=float(1 / (shares**2).sum()),
        epochs=float(min(baseline.counts.max(), candidate.counts.max())),
        unseen=dot(candidate.means * (1 - candidate.is_run), shares),
    )


def loss_of(better: Sample, worse: Sample) -> Loss:
    shares = better.shares
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


def by_look(number: int) -> Confidence:
    """The confidence of a look at the same subject with all trials until then; `number` begins at 1.

    An unchanged agent that is looked at until it has regressed, and a worse one that is looked at until it
    passes, are decided wrongly as rarely as by one look: `benchmarks/pull_requests.py` simulates both.
    """
    return lambda _set, sets: 1 - risk_of(number) / sets


def risk_of(look: int) -> float:
    """How likely a look is wrong at most, for each of its bounds."""
    return (1 - LEVEL) / look**2


def verdicts(
    found: Mapping[str, Difference], margin: float, confidence: Confidence, sides: int = 1
) -> dict[str, Verdict]:
    """Map sets to their verdicts. So many `sides` share the error of a false alarm (Bonferroni)."""
    levels = holm_levels(found, lambda name, sets: confidence(name, sets * sides))
    return {
        name: verdict(one, margin, pass_level=confidence(name, 1), level=levels[name])
        for name, one in found.items()
    }


def holm_levels(found: Mapping[str, Difference], confidence: Confidence) -> dict[str, float]:
    """The confidence at which each set has regressed: several sets give no more false alarms than one.

    Holm 1979, Scandinavian Journal of Statistics 6, 65-70: after one that is not worse at its level, none is.
    """
    levels: dict[str, float] = {}
    ends = False

    def share_of_error(name: str) -> float:
        """The p-value of a set in the units of the error that it may have, which differs where looks do."""
        error = 1 - confidence(name, len(found))
        return chance_of_no_drop(found[name]) / error if error else inf

    for place, name in enumerate(sorted(found, key=share_of_error)):
        level = confidence(name, len(found) - place)
        ends = ends or not is_worse(found[name], level)
        levels[name] = 1.0 if ends else level
    return levels


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    if REGRESSED in verdicts:
        return REGRESSED
    return PASS if all(one == PASS for one in verdicts) else CANNOT_TELL


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
