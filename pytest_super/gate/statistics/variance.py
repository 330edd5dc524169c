"""How much noise a difference has, as the trials of the tasks tell it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, pi, sqrt
from typing import Any

import numpy
from scipy.special import stdtrit

from pytest_super.gate.statistics.samples import Numbers, Sample, dot, sample_of, shares_of

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
class Variance:
    """An estimated variance, and the degrees of freedom of the estimate."""

    value: float
    freedom: float
    seen: float = inf
    """The degrees of freedom if all trials had one variance. They only grow with the trials."""

    def half_width(self, level: float) -> float:
        """How far a one-sided bound is from the estimate."""
        return quantile_of(level, self.freedom) * numpy.sqrt(self.value)  # type: ignore[no-any-return]


def variance_of(baseline: Sample, candidate: Sample, shares: Numbers) -> Variance:
    """The difference's variance from repeats and, where that is larger, from tasks or from epochs.

    Repeats miss what all trials of a task share in one run, such as a snapshot of a model or a cache: that
    shows between the tasks. What tasks of one repository share in an epoch shows between epochs.
    """
    # Repeats tell nothing of tasks without any: those that are repeated can be the quiet ones.
    single = (baseline.counts == 1) & (candidate.counts == 1)
    if single.all() or not (baseline.has_repeats_in(~single) and candidate.has_repeats_in(~single)):
        return from_tasks(baseline, candidate, shares)
    repeated = of_part(within_tasks, baseline, candidate, shares, ~single)
    if single.any():
        repeated = sum_of(repeated, of_part(from_tasks, baseline, candidate, shares, single))
    repeated = replace(repeated, value=numpy.maximum(repeated.value, baseline.blocks + candidate.blocks))
    # The prior is for what repeats do not show. Here they show more.
    spread = from_tasks(baseline, candidate, shares)
    raw = between_tasks(candidate.means - baseline.means, shares).value
    return wider(repeated, replace(spread, value=numpy.minimum(spread.value, raw)))


def wider(one: Variance, other: Variance) -> Variance:
    """The one with the wider interval, by comparison."""
    is_one = one.half_width(LEVEL) >= other.half_width(LEVEL)
    chosen: dict[str, Any] = {
        name: numpy.where(is_one, getattr(one, name), getattr(other, name))[()]
        for name in ("value", "freedom")
    }
    return Variance(**chosen, seen=one.seen)


def widening(shares: Numbers) -> float:
    """Tell by how much the widest estimate is larger than the noise, on average, if trials share nothing.

    That between n tasks has a standard deviation of √(2 / (n - 1)), and only counts where it is too large.
    """
    return 1 + 1 / sqrt(pi * max(1 / float(shares @ shares) - 1, 1))


def from_tasks(baseline: Sample, candidate: Sample, shares: Numbers) -> Variance:
    """The variance from the differences of the tasks alone, with a part of the prior."""
    prior = PRIOR_VARIANCE * noise_of(baseline.counts, candidate.counts, shares)
    return moderated(between_tasks(candidate.means - baseline.means, shares), prior)


def of_part(
    estimate: Callable[[Sample, Sample, Numbers], Variance],
    baseline: Sample,
    candidate: Sample,
    shares: Numbers,
    part: Any,
) -> Variance:
    """The part that these tasks have in the variance of the whole."""
    weight = float(shares[part].sum())
    found = estimate(baseline.part(part), candidate.part(part), shares[part] / weight)
    return replace(found, value=weight**2 * found.value)


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


def between_tasks(differences: Numbers, shares: Numbers) -> Variance:
    """Estimate it from the differences d of tasks with the shares p; true differences are part of it.

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
    """Compute the trace of B², B = M'AM = A - ap' - pa' + (Σa) pp', without a matrix."""
    total, both, squares = a.sum(), a @ shares, shares @ shares
    found = a @ a - 4 * (a**2 @ shares) + 2 * total * (a @ shares**2) + 2 * both**2
    return float(found + 2 * squares * (a @ a) - 4 * total * squares * both + (total * squares) ** 2)


def completed(run: Sample) -> tuple[Numbers, Numbers]:
    """Each task's variance and its degrees of freedom. One with a single trial has those of the others."""
    freedoms = run.counts - 1
    total = freedoms.sum()
    pooled = ((run.variances * freedoms).sum(-1) / total)[..., None]
    return numpy.where(freedoms > 0, run.variances, pooled), numpy.where(freedoms > 0, freedoms, total)


def satterthwaite(parts: Numbers, freedoms: Numbers) -> Any:
    """The degrees of freedom of a sum of estimated variances (Satterthwaite 1946, doi 10.2307/3002019)."""
    return parts.sum(-1) ** 2 / (parts**2 / freedoms).sum(-1)


def trust_in(freedom: Any) -> Any:
    """The weight of a variance with these degrees of freedom, next to the prior one."""
    return freedom / (freedom + PRIOR_FREEDOM)


def mixed(trust: Any, variances: Any, prior: float = PRIOR_VARIANCE) -> Any:
    return trust * variances + (1 - trust) * prior


def moderated(own: Variance, prior: float) -> Variance:
    freedom = own.freedom + PRIOR_FREEDOM
    return Variance(value=mixed(trust_in(own.freedom), own.value, prior), freedom=freedom, seen=freedom)


def sum_of(one: Variance, other: Variance) -> Variance:
    total = one.value + other.value
    freedom = total**2 / (one.value**2 / one.freedom + other.value**2 / other.freedom)
    return Variance(value=total, freedom=freedom, seen=one.seen + other.seen - PRIOR_FREEDOM)


def noise_of(baseline: Numbers, candidate: Numbers, shares: Numbers, noises: Numbers | float = 1.0) -> Any:
    """The variance of the difference, by the tasks' numbers of trials and the variances of these."""
    return (shares**2 * noises * (1 / baseline + 1 / candidate)).sum(-1)


def noises_of(run: Sample, shares: Numbers) -> Numbers:
    """Each task's variance to plan with. Few trials tell little, so the mean of all tasks counts, too.

    Without repeats, half of the variance of all values is taken to be between the trials of a task.
    """
    single = run.counts == 1
    if single.any() and not single.all():
        noises = numpy.zeros(len(shares))
        for part in (single, ~single):
            noises[part] = noises_of(run.part(part), shares[part] / shares[part].sum())
        return noises
    whole = float(run.squares @ shares - (run.means @ shares) ** 2)
    usual = mixed(trust_in(len(shares) - 1), whole / 2, EXPECTED_VARIANCE)
    if single.all():
        return numpy.full(len(shares), usual)
    variances, freedoms = completed(run)
    parts = shares**2 / run.counts
    alone = mixed(trust_in(freedoms), variances, usual)
    total = mixed(trust_in(satterthwaite(parts, freedoms)), parts @ variances, parts.sum() * usual)
    return numpy.asarray(alone * total / dot(parts, alone))


def standard_error(values: Sequence[Sequence[float]], weights: Sequence[float]) -> float:
    """The standard error of the mean over tasks, by the trials of each; from 0 to 1."""
    run, shares = sample_of(values), shares_of(weights)
    return sqrt((shares**2 * noises_of(run, shares) / run.counts).sum())


def quantile_of(level: float, freedom: float) -> float:
    """Compute a quantile of Student's t."""
    return stdtrit(freedom, level)  # type: ignore[no-any-return]
