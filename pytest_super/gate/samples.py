"""The trials of two runs on the same tasks, as numbers by task, and how much noise their difference has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf
from statistics import fmean
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray
from scipy.special import stdtrit

Numbers: TypeAlias = NDArray[numpy.float64]
"""The tasks are the last axis. Arrays of several comparisons at once have more axes before it."""
LEVEL = 0.95
"""The confidence of each one-sided bound; both together are an interval of 90 %."""
# Few trials tell little about their variance, and equal ones nothing. So the estimate is moderated by a prior
# one (Smyth 2004, doi 10.2202/1544-6115.1027) with the weight of so many degrees of freedom: the largest
# variance that values from 0 to 1 can have.
PRIOR_VARIANCE = 1 / 4
PRIOR_FREEDOM = 4.0


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The values of one task in both runs, each from 0 to 1, and at least one each."""

    baseline: Sequence[float]
    candidate: Sequence[float]
    weight: float = 1.0
    is_run: bool = True
    """Whether the candidate was tried. If not, its values are those that an unchanged one would have."""
    repository: str = ""
    """Tasks of one repository can share their luck in an epoch. "": the task is alone in its own."""
    baseline_epochs: Sequence[Any] = ()
    """What equals that of other tasks for the trials of one epoch; only with a repository."""
    candidate_epochs: Sequence[Any] = ()

    @property
    def difference(self) -> float:
        return fmean(self.candidate) - fmean(self.baseline)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The trials of one run, by task."""

    counts: Numbers
    means: Numbers
    squares: Numbers
    """The means of the squared values."""
    variances: Numbers
    """Between the trials of a task; anything where a task has one trial."""
    shares: Numbers
    """The weights of the tasks. They add up to 1."""
    is_run: Numbers | float = 1.0
    """1 for each task that was tried, and 0 for the others."""
    blocks: Any = 0.0
    """The variance of the mean by what tasks of one repository share in an epoch; 0 if that is not known."""

    def has_repeats_in(self, part: Any) -> bool:
        """Whether the repeats of some of these tasks can tell the noise of those with a single trial."""
        counts = self.counts[part]
        return bool((counts - 1).sum() >= (counts == 1).sum())

    def part(self, part: Any) -> "Sample":
        """Some of the tasks, as a whole of their own."""
        names = ("counts", "means", "squares", "variances")
        shares = self.shares[part]
        own = {name: getattr(self, name)[..., part] for name in names}
        return Sample(**own, shares=shares / shares.sum())


def samples_of(pairs: Sequence[Pair]) -> tuple[Sample, Sample]:
    """The baseline and the candidate."""
    runs = [pair.baseline for pair in pairs], [pair.candidate for pair in pairs]
    before, after = (sample_of(run, [pair.weight for pair in pairs]) for run in runs)
    after = replace(after, is_run=numpy.array([float(pair.is_run) for pair in pairs]))
    names = [pair.repository or str(place) for place, pair in enumerate(pairs)]
    if len(set(names)) == len(names):
        return before, after
    epochs = [pair.baseline_epochs for pair in pairs], [pair.candidate_epochs for pair in pairs]
    old, new = (
        noise_by_epoch(table_of(*one), after.shares, members_of(names))
        for one in zip(runs, epochs, strict=True)
    )
    return replace(before, blocks=old), replace(after, blocks=new)


def table_of(run: Sequence[Sequence[float]], epochs: Sequence[Sequence[Any]]) -> Numbers:
    """The values by task and epoch; not a number where a task has none."""
    columns: dict[Any, int] = {}
    for of_task in epochs:
        for epoch in of_task:
            columns.setdefault(epoch, len(columns))
    table = numpy.full((len(run), len(columns)), numpy.nan)
    for row, values, of_task in zip(table, run, epochs, strict=True):
        row[[columns[epoch] for epoch in of_task]] = values
    return table


def members_of(names: Sequence[str]) -> Numbers:
    """A row for each name, with 1 at the places that have it."""
    return numpy.array([[float(one == name) for one in names] for name in dict.fromkeys(names)])


def noise_by_epoch(table: Numbers, shares: Numbers, members: Numbers) -> Any:
    """The variance of the mean over tasks, from the sums of each repository's tasks in each epoch.

    The last two axes of `table` are tasks and epochs. Sums keep what the tasks share (Cameron and Miller
    2015, doi 10.3368/jhr.50.2.317). A task with a single trial adds nothing.
    """
    counts = (~numpy.isnan(table)).sum(-1)
    # The squares of the residuals of k trials sum up to k - 1 times their variance.
    scale = shares / numpy.sqrt(counts * numpy.maximum(counts - 1, 1))
    residuals = numpy.nan_to_num(table - numpy.nanmean(table, -1, keepdims=True)) * scale[..., None]
    return ((members @ residuals) ** 2).sum((-1, -2))


def sample_of(run: Sequence[Sequence[float]], weights: Sequence[float] = ()) -> Sample:
    """The values of each task, at least one each, and the weights of the tasks; equal ones by default."""
    return Sample(
        counts=numpy.array([float(len(values)) for values in run]),
        means=numpy.array([fmean(values) for values in run]),
        squares=numpy.array([fmean(value**2 for value in values) for values in run]),
        variances=numpy.array([variance(values) if len(values) > 1 else 0.0 for values in run]),
        shares=numpy.array(weights) / fsum(weights) if weights else numpy.full(len(run), 1 / len(run)),
    )


def dot(values: Numbers, factors: Numbers) -> Any:
    """The sum over the tasks: a number, or an array with one of each comparison."""
    return values @ factors


def variance(values: Sequence[float]) -> float:
    """Compute it for two values or more, in a tenth of the time of the exact `statistics.variance`."""
    mean = fmean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


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


def variance_of(baseline: Sample, candidate: Sample) -> Variance:
    """The difference's variance from repeats and, where that is larger, from tasks or from epochs.

    Repeats miss what all trials of a task share in one run, such as a snapshot of a model or a cache: that
    shows between the tasks. What tasks of one repository share in an epoch shows between epochs.
    """
    # Repeats tell nothing of tasks without any: those that are repeated can be the quiet ones.
    single = (baseline.counts == 1) & (candidate.counts == 1)
    if single.all() or not (baseline.has_repeats_in(~single) and candidate.has_repeats_in(~single)):
        return from_tasks(baseline, candidate)
    repeated = of_part(within_tasks, baseline, candidate, ~single)
    if single.any():
        repeated = sum_of(repeated, of_part(from_tasks, baseline, candidate, single))
    repeated = replace(repeated, value=numpy.maximum(repeated.value, baseline.blocks + candidate.blocks))
    # The prior is for what repeats do not show. Here they show more.
    spread = from_tasks(baseline, candidate)
    raw = between_tasks(candidate.means - baseline.means, baseline.shares).value
    return wider(repeated, replace(spread, value=numpy.minimum(spread.value, raw)))


def wider(one: Variance, other: Variance) -> Variance:
    """The one with the wider interval, by comparison."""
    is_one = one.half_width(LEVEL) >= other.half_width(LEVEL)
    chosen: dict[str, Any] = {
        name: numpy.where(is_one, getattr(one, name), getattr(other, name))[()]
        for name in ("value", "freedom")
    }
    return Variance(**chosen, seen=one.seen)


def from_tasks(baseline: Sample, candidate: Sample) -> Variance:
    """The variance from the differences of the tasks alone, with a part of the prior."""
    prior = PRIOR_VARIANCE * noise_of(baseline, candidate.counts)
    return moderated(between_tasks(candidate.means - baseline.means, baseline.shares), prior)


def of_part(
    estimate: Callable[[Sample, Sample], Variance], baseline: Sample, candidate: Sample, part: Any
) -> Variance:
    """The part that these tasks have in the variance of the whole."""
    found = estimate(baseline.part(part), candidate.part(part))
    return replace(found, value=float(baseline.shares[part].sum()) ** 2 * found.value)


def within_tasks(baseline: Sample, candidate: Sample) -> Variance:
    """The sum over the tasks of both runs, with the degrees of freedom of Satterthwaite.

    The weight of the prior variance goes by the trials that were seen, as if all variances were equal, and it
    is part of each variance before the degrees of freedom are counted: more trials, even equal ones, are
    never less sure. The larger of two estimates counts, by the variances of each run and by those that both
    share: in three trials of a task its noise often does not show.
    """
    runs = (baseline, candidate)
    variances, freedoms = zip(*map(completed, runs), strict=True)
    parts = [run.shares**2 / run.counts for run in runs]
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
    residuals = differences - (differences @ shares)[..., None]
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


def noise_of(baseline: Sample, epochs: Numbers, noises: Numbers | float = 1.0) -> Any:
    """The variance of a difference from so many epochs of each task, by the variances of the trials."""
    return (baseline.shares**2 * noises * (1 / baseline.counts + 1 / epochs)).sum(-1)


def quantile_of(level: float, freedom: float) -> float:
    """Compute a quantile of Student's t."""
    return stdtrit(freedom, level)  # type: ignore[no-any-return]
