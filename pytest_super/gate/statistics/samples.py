"""The trials of two runs on the same tasks, as numbers by task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from statistics import fmean
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[numpy.float64]
"""The tasks are the last axis. Arrays of several comparisons at once have more axes before it."""


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
        """The differences of the task's paired trials."""
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


def tasks_of(run: Sample, part: Any) -> Sample:
    names = ("counts", "means", "squares", "variances")
    return replace(run, **{name: getattr(run, name)[..., part] for name in names})


def dot(values: Numbers, factors: Numbers) -> Any:
    """The sum over the tasks: a number, or an array with one of each comparison."""
    return values @ factors


def variance(values: Sequence[float]) -> float:
    """Compute it for two values or more, in a tenth of the time of the exact `statistics.variance`."""
    mean = fmean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
