"""The difference between two runs on the same tasks.

The tasks are fixed, so all noise is that between trials of one task (Miller 2024, arXiv 2411.00640).
`benchmarks/coverage.py` simulates how often the bounds are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from scipy.special import stdtrit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LEVEL = 0.95
"""The confidence of each one-sided bound; both together are an interval of 90 %."""
# Few trials tell little about their variance, and equal ones nothing. So the estimate is moderated by a prior
# one (Smyth 2004, doi 10.2202/1544-6115.1027) with the weight of so many degrees of freedom: the variance of
# solved and not solved where each rate from 0 to 1 is equally likely.
PRIOR_VARIANCE = 1 / 6
PRIOR_FREEDOM = 4.0


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The values of one task in both runs, each from 0 to 1, and at least one each."""

    baseline: Sequence[float]
    candidate: Sequence[float]
    weight: float = 1.0

    @property
    def difference(self) -> float:
        return fmean(self.candidate) - fmean(self.baseline)


@dataclass(frozen=True, kw_only=True)
class Variance:
    """An estimated variance, and the degrees of freedom of the estimate."""

    value: float
    freedom: float


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Candidate minus baseline, as the mean over tasks."""

    value: float
    variance: Variance

    def bounds(self, level: float = LEVEL) -> tuple[float, float]:
        """The lower and the upper one-sided bound."""
        half = quantile(level, self.variance.freedom) * sqrt(self.variance.value)
        return max(self.value - half, -1.0), min(self.value + half, 1.0)


def difference(pairs: Sequence[Pair]) -> Difference:
    """Of at least one pair."""
    shares = shares_of([pair.weight for pair in pairs])
    value = fsum(share * pair.difference for share, pair in zip(shares, pairs, strict=True))
    prior = PRIOR_VARIANCE * per_trial(counts_of(pairs), shares)
    return Difference(value=value, variance=moderated(variance_of(pairs, shares), prior))


def counts_of(pairs: Iterable[Pair]) -> list[tuple[int, int]]:
    return [(len(pair.baseline), len(pair.candidate)) for pair in pairs]


def shares_of(weights: Sequence[float]) -> list[float]:
    total = fsum(weights)
    return [weight / total for weight in weights]


def variance_of(pairs: Sequence[Pair], shares: Sequence[float]) -> Variance:
    """Of the difference, by the trials alone.

    It is the sum over the tasks of both runs, with the degrees of freedom of Satterthwaite. If a run has too
    few repeats, only the tasks' differences tell it, and how tasks differ is part of it.
    """
    if not have_repeats(counts_of(pairs)):
        return between_tasks(pairs, shares)
    runs = [[pair.baseline for pair in pairs], [pair.candidate for pair in pairs]]
    parts = [part for run in runs for part in within_tasks(run, shares)]
    total = fsum(part.value for part in parts)
    squares = fsum(part.value**2 / part.freedom for part in parts)
    return Variance(value=total, freedom=total**2 / squares if squares else 0.0)


def have_repeats(counts: Sequence[tuple[int, int]]) -> bool:
    """Whether the repeats of some tasks can tell the noise of those with a single trial, in both runs."""
    return all(sum(run) - len(run) >= sum(number == 1 for number in run) for run in zip(*counts, strict=True))


def within_tasks(run: Sequence[Sequence[float]], shares: Sequence[float]) -> Iterable[Variance]:
    """The part of each task. One with a single trial has the mean variance of the others."""
    others = pooled(run)
    for values, share in zip(run, shares, strict=True):
        own = variance(values) if len(values) > 1 else others.value
        yield Variance(value=share**2 * own / len(values), freedom=len(values) - 1 or others.freedom)


def pooled(run: Iterable[Sequence[float]]) -> Variance:
    """The variance of the values of a task, which is the same for all tasks."""
    repeated = [values for values in run if len(values) > 1]
    freedom = sum(len(values) - 1 for values in repeated)
    squares = fsum((len(values) - 1) * variance(values) for values in repeated)
    return Variance(value=squares / freedom if freedom else 0.0, freedom=freedom)


def variance(values: Sequence[float]) -> float:
    """Of at least two; that of the module `statistics` is exact and takes ten times as long."""
    mean = fmean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def between_tasks(pairs: Sequence[Pair], shares: Sequence[float]) -> Variance:
    if len(pairs) < 2:
        return Variance(value=0.0, freedom=0.0)
    spread = variance([pair.difference for pair in pairs])
    return Variance(value=spread * fsum(share**2 for share in shares), freedom=len(pairs) - 1)


def per_trial(
    counts: Iterable[tuple[int, int]], shares: Sequence[float], noises: Sequence[float] | None = None
) -> float:
    """The variance of the difference, by each task's number of trials and their variance (by default 1)."""
    return fsum(
        share**2 * noise * (1 / baseline + 1 / candidate)
        for share, noise, (baseline, candidate) in zip(
            shares, noises or [1.0] * len(shares), counts, strict=True
        )
    )


def moderated(own: Variance, prior: float) -> Variance:
    freedom = own.freedom + PRIOR_FREEDOM
    return Variance(value=(own.freedom * own.value + PRIOR_FREEDOM * prior) / freedom, freedom=freedom)


def quantile(level: float, freedom: float) -> float:
    """Of Student's t."""
    return float(stdtrit(freedom, level))
