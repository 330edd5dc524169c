"""The difference between two runs on the same tasks, and its bounds.

The tasks are fixed, so all noise is that between trials of one task (Miller 2024, arXiv 2411.00640).
`benchmarks/coverage.py` simulates how often the bounds are right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum, inf, log
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy
from numpy.typing import NDArray
from scipy.special import stdtrit

from pytest_super.statistics.pairs import pairs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.statistics.pairs import Pairs

Numbers: TypeAlias = NDArray[numpy.float64]
"""The tasks are the last axis. Arrays of several comparisons at once have more axes before it."""

LEVEL = 0.95
"""The confidence of each one-sided bound; both together are an interval of 90 %."""
# Few trials tell little about their variance, and equal ones nothing. So the estimate is moderated by a prior
# one (Smyth 2004, doi 10.2202/1544-6115.1027) with the weight of so many degrees of freedom: the largest
# variance that values from 0 to 1 can have.
PRIOR_VARIANCE = 1 / 4
PRIOR_FREEDOM = 4.0
# The variance of solved and not solved, if each rate from 0 to 1 is equally likely.
EXPECTED_VARIANCE = 1 / 6


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The values of one task in both runs, each from 0 to 1, and at least one each."""

    baseline: Sequence[float]
    candidate: Sequence[float]
    weight: float = 1.0
    is_run: bool = True
    """Whether the candidate was tried. If not, its values are those that an unchanged one would have."""
    paired: int = 0
    """The first so many values of both runs are of paired trials, in the same order."""

    @property
    def difference(self) -> float:
        return fmean(self.candidate) - fmean(self.baseline)

    @property
    def differences(self) -> list[float]:
        """Of its paired trials."""
        paired = zip(self.baseline[: self.paired], self.candidate[: self.paired], strict=True)
        return [after - before for before, after in paired]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The trials of one run, by task."""

    counts: Numbers
    means: Numbers
    squares: Numbers
    """The means of the squared values."""
    variances: Numbers
    """Between the trials of a task; anything where a task has one trial."""
    is_run: Numbers | float = 1.0
    """1 for each task that was tried, and 0 for the others."""

    @property
    def has_repeats(self) -> bool:
        """Whether the repeats of some tasks can tell the noise of those with a single trial."""
        return bool((self.counts - 1).sum() >= (self.counts == 1).sum())


@dataclass(frozen=True, kw_only=True)
class Variance:
    """An estimated variance, and the degrees of freedom of the estimate."""

    value: float
    freedom: float
    seen: float = inf
    """The degrees of freedom if all trials had one variance. They only grow with the trials."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The noise of a run that fails each success of a better one with the same chance."""

    mean: float
    """Of the better run."""
    noise: float
    """The variance of the worse run's mean is this, times the chance, times its complement."""

    def variance(self, loss: float) -> float:
        """Of the worse run's mean, if it is lower by `loss`."""
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
    unseen: float = 0.0
    """How much lower the candidate can be by tasks that were not run."""
    further: float = 0.0
    """More variance, which counts unless a bound without it shows that there is a difference."""
    least: float = 0.0
    """Both bounds are at least so far from the value, at LEVEL."""

    def bounds(self, level: float = LEVEL) -> tuple[float, float]:
        """The lower and the upper one-sided bound.

        The estimated noise alone would be too small where trials rarely fail: a run without a failure seems
        to have none. So the bounds also include each loss and gain whose own noise explains the value. The
        lower one is also that of a candidate which solves none of the tasks that were not run.
        """
        if level == 1:
            return -1.0, 1.0
        below, above = self.halves(level)
        quantile = quantile_of(level, self.variance.seen)
        lower = numpy.minimum(self.value - below, -self.loss.largest(self.value, quantile)) - self.unseen
        upper = numpy.maximum(self.value + above, self.gain.largest(-self.value, quantile))
        return numpy.maximum(lower, -1.0), numpy.minimum(upper, 1.0)

    def halves(self, level: float) -> tuple[Any, Any]:
        """How far the bounds are from the value by the estimated noise alone, below and above it."""
        quantile = quantile_of(level, self.variance.freedom)
        # The chance that no pair differs falls by one factor with each further `least`.
        least = self.least * (log(1 - level) / log(1 - LEVEL))
        near, far = (
            numpy.maximum(quantile * numpy.sqrt(self.variance.value + more), least)
            for more in (0.0, self.further)
        )
        return numpy.where(self.value > near, near, far), numpy.where(-self.value > near, near, far)


def difference(pairs: Sequence[Pair], drift: float = 0.0) -> Difference:
    """Of at least one pair; `drift` is as for `difference_of`."""
    baseline, candidate = samples_of(pairs)
    shares = shares_of([pair.weight for pair in pairs])
    return difference_of(baseline, candidate, shares, drift, pairs_of([pair.differences for pair in pairs]))


def difference_of(
    baseline: Sample, candidate: Sample, shares: Numbers, drift: float = 0.0, pairs: Pairs | None = None
) -> Difference:
    """Of at least one task.

    `drift` is the standard deviation of what changes a whole run, such as a model that its provider replaces
    behind its name: trials cannot show it, so whoever knows it states it.

    With pairs there are two differences: that of all trials, as if none were paired, and that of the pairs
    alone, whose noise is only that of the pairs that differ. The one with the narrower interval counts.
    """
    of_trials = difference_of_trials(baseline, candidate, shares, drift)
    if pairs is None:
        return of_trials
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
    """In each of several comparisons the number of the one or of the other, or all numbers of a part."""
    if not isinstance(one, Variance | Loss):
        return numpy.where(is_one, one, other)[()]
    numbers = {name: either(is_one, number, getattr(other, name)) for name, number in vars(one).items()}
    return type(one)(**numbers)


def samples_of(pairs: Sequence[Pair]) -> tuple[Sample, Sample]:
    candidate = sample_of([pair.candidate for pair in pairs])
    is_run = numpy.array([float(pair.is_run) for pair in pairs])
    return sample_of([pair.baseline for pair in pairs]), replace(candidate, is_run=is_run)


def sample_of(run: Sequence[Sequence[float]]) -> Sample:
    return Sample(
        counts=numpy.array([float(len(values)) for values in run]),
        means=numpy.array([fmean(values) for values in run]),
        squares=numpy.array([fmean(value**2 for value in values) for values in run]),
        variances=numpy.array([variance(values) if len(values) > 1 else 0.0 for values in run]),
    )


def shares_of(weights: Sequence[float]) -> Numbers:
    return numpy.array(weights) / fsum(weights)


def variance_of(baseline: Sample, candidate: Sample, shares: Numbers) -> Variance:
    """Of the difference, as repeats tell it, or the differences of tasks if a run has too few of them."""
    if baseline.has_repeats and candidate.has_repeats:
        return within_tasks(baseline, candidate, shares)
    prior = PRIOR_VARIANCE * noise_of(baseline.counts, candidate.counts, shares)
    return moderated(between_tasks(candidate.means - baseline.means, shares), prior)


def variance_of_part(baseline: Sample, candidate: Sample, shares: Numbers, part: Any) -> Variance:
    """Of the difference in these tasks, which have only a part of the weight."""
    weight = float(shares[part].sum())
    found = variance_of(tasks_of(baseline, part), tasks_of(candidate, part), shares[part] / weight)
    return replace(found, value=weight**2 * found.value)


def tasks_of(run: Sample, part: Any) -> Sample:
    names = ("counts", "means", "squares", "variances")
    return replace(run, **{name: getattr(run, name)[..., part] for name in names})


def sum_of(one: Variance, other: Variance) -> Variance:
    total = one.value + other.value
    freedom = total**2 / (one.value**2 / one.freedom + other.value**2 / other.freedom)
    return Variance(value=total, freedom=freedom, seen=numpy.minimum(one.seen, other.seen))


def noise_of(baseline: Numbers, candidate: Numbers, shares: Numbers, noises: Numbers | float = 1.0) -> Any:
    """The variance of the difference, by the tasks' numbers of trials and the variances of these."""
    return (shares**2 * noises * (1 / baseline + 1 / candidate)).sum(-1)


def noises_of(run: Sample, shares: Numbers) -> Numbers:
    """Each task's variance to plan with. Few trials tell little, so the mean of all tasks counts, too.

    Without repeats, half of the variance of all values is taken to be between the trials of a task.
    """
    whole = float(run.squares @ shares - (run.means @ shares) ** 2)
    usual = mixed(trust_in(len(shares) - 1), whole / 2, EXPECTED_VARIANCE)
    if not run.has_repeats:
        return numpy.full(len(shares), usual)
    variances, freedoms = completed(run)
    parts = shares**2 / run.counts
    alone = mixed(trust_in(freedoms), variances, usual)
    total = mixed(trust_in(satterthwaite(parts, freedoms)), parts @ variances, parts.sum() * usual)
    return numpy.asarray(alone * total / dot(parts, alone))


def within_tasks(baseline: Sample, candidate: Sample, shares: Numbers) -> Variance:
    """The sum over the tasks of both runs, with the degrees of freedom of Satterthwaite.

    The weight of the prior variance goes by the trials that were seen, as if all variances were equal, and it
    is part of each variance before the degrees of freedom are counted: more trials, even equal ones, are
    never less sure. The larger of two estimates counts, by the variances of each run and by those that both
    share: in three trials of a task its noise often does not show.
    """
    runs = (baseline, candidate)
    variances, freedoms = zip(*map(completed, runs), strict=True)
    parts = [shares**2 / run.counts for run in runs]
    seen = sum(satterthwaite(part, freedom) for part, freedom in zip(parts, freedoms, strict=True))
    trust = trust_in(seen)
    own = [part * mixed(trust, one) for part, one in zip(parts, variances, strict=True)]
    # Two single trials share what was filled in for them.
    weights = [numpy.maximum(run.counts - 1, 1e-9) for run in runs]
    common = (weights[0] * variances[0] + weights[1] * variances[1]) / sum(weights)
    total = sum(one.sum(-1) for one in own)
    shared = (sum(parts) * mixed(trust, common)).sum(-1)
    squares = sum((one**2 / freedom).sum(-1) for one, freedom in zip(own, freedoms, strict=True))
    return Variance(
        value=numpy.maximum(total, shared),
        freedom=total**2 / squares + PRIOR_FREEDOM,
        seen=seen + PRIOR_FREEDOM,
    )


def completed(run: Sample) -> tuple[Numbers, Numbers]:
    """Each task's variance and its degrees of freedom. One with a single trial has those of the others."""
    freedoms = run.counts - 1
    total = freedoms.sum()
    pooled = ((run.variances * freedoms).sum(-1) / total)[..., None]
    return numpy.where(freedoms > 0, run.variances, pooled), numpy.where(freedoms > 0, freedoms, total)


def trust_in(freedom: Any) -> Any:
    """The weight of a variance with these degrees of freedom, next to the prior one."""
    return freedom / (freedom + PRIOR_FREEDOM)


def mixed(trust: Any, variances: Any, prior: float = PRIOR_VARIANCE) -> Any:
    return trust * variances + (1 - trust) * prior


def satterthwaite(parts: Numbers, freedoms: Numbers) -> Any:
    """The degrees of freedom of a sum of estimated variances (Satterthwaite 1946, doi 10.2307/3002019)."""
    return parts.sum(-1) ** 2 / (parts**2 / freedoms).sum(-1)


def between_tasks(differences: Numbers, shares: Numbers) -> Variance:
    """By how the differences d of tasks with the shares p vary; that they differ in truth is part of it.

    A residual e = d - Σpd has the expectation s² (1 - 2p + Σp²), if the differences have the variance s². So
    Σ a·e² with a = p² / (1 - 2p + Σp²) has that of Σpd. It is d'Bd with B = M'AM and M = I - 1p', and its
    degrees of freedom are tr(B)² / tr(B²) (Bell and McCaffrey 2002, Survey Methodology 28, 169-181).
    """
    if len(shares) < 2:
        return Variance(value=0.0, freedom=0.0)
    all_squares = float(shares @ shares)
    a = shares**2 / (1 - 2 * shares + all_squares)
    residuals = differences - dot(differences, shares)[..., None]
    return Variance(value=dot(residuals**2, a), freedom=all_squares**2 / trace_of_square(a, shares))


def trace_of_square(a: Numbers, shares: Numbers) -> float:
    """Of B = M'AM = A - ap' - pa' + (Σa) pp', without a matrix."""
    total, both, squares = a.sum(), a @ shares, shares @ shares
    found = a @ a - 4 * (a**2 @ shares) + 2 * total * (a @ shares**2) + 2 * both**2
    return float(found + 2 * squares * (a @ a) - 4 * total * squares * both + (total * squares) ** 2)


def dot(values: Numbers, factors: Numbers) -> Any:
    """The sum over the tasks: a number, or an array with one of each comparison."""
    return values @ factors


def loss_of(better: Sample, worse: Sample, shares: Numbers) -> Loss:
    return Loss(mean=dot(better.means, shares), noise=dot(better.squares, shares**2 / worse.counts))


def moderated(own: Variance, prior: float) -> Variance:
    freedom = own.freedom + PRIOR_FREEDOM
    return Variance(value=mixed(trust_in(own.freedom), own.value, prior), freedom=freedom, seen=freedom)


def with_drift(own: Variance, drift: float) -> Variance:
    value = own.value + drift**2
    return replace(own, value=value, freedom=own.freedom * (value / own.value) ** 2)


def variance(values: Sequence[float]) -> float:
    """Of at least two; that of the module `statistics` is exact and takes ten times as long."""
    mean = fmean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def quantile_of(level: float, freedom: float) -> float:
    """Of Student's t."""
    return stdtrit(freedom, level)  # type: ignore[no-any-return]
