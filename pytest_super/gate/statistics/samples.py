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
    is_run: Numbers | float = 1.0
    """1 for each task that was tried, and 0 for the others."""
    blocks: Any = 0.0
    """The variance of the mean by what tasks of one repository share in an epoch; 0 if that is not known."""

    def has_repeats_in(self, part: Any) -> bool:
        """Whether the repeats of some of these tasks can tell the noise of those with a single trial."""
        counts = self.counts[part]
        return bool((counts - 1).sum() >= (counts == 1).sum())

    def part(self, part: Any) -> "Sample":
        """Some of the tasks."""
        names = ("counts", "means", "squares", "variances")
        return Sample(**{name: getattr(self, name)[..., part] for name in names})


def samples_of(pairs: Sequence[Pair]) -> tuple[Sample, Sample]:
    """The baseline and the candidate."""
    before, after = (
        sample_of([pair.baseline for pair in pairs]),
        sample_of([pair.candidate for pair in pairs]),
    )
    after = replace(after, is_run=numpy.array([float(pair.is_run) for pair in pairs]))
    names = [pair.repository or str(place) for place, pair in enumerate(pairs)]
    if len(set(names)) == len(names):
        return before, after
    shares, members = shares_of([pair.weight for pair in pairs]), members_of(names)
    tables = (
        table_of([pair.baseline for pair in pairs], [pair.baseline_epochs for pair in pairs]),
        table_of([pair.candidate for pair in pairs], [pair.candidate_epochs for pair in pairs]),
    )
    blocks = [noise_by_epoch(table, shares, members) for table in tables]
    return replace(before, blocks=blocks[0]), replace(after, blocks=blocks[1])


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


def sample_of(run: Sequence[Sequence[float]]) -> Sample:
    return Sample(
        counts=numpy.array([float(len(values)) for values in run]),
        means=numpy.array([fmean(values) for values in run]),
        squares=numpy.array([fmean(value**2 for value in values) for values in run]),
        variances=numpy.array([variance(values) if len(values) > 1 else 0.0 for values in run]),
    )


def shares_of(weights: Sequence[float]) -> Numbers:
    return numpy.array(weights) / fsum(weights)


def dot(values: Numbers, factors: Numbers) -> Any:
    """The sum over the tasks: a number, or an array with one of each comparison."""
    return values @ factors


def variance(values: Sequence[float]) -> float:
    """Compute it for two values or more, in a tenth of the time of the exact `statistics.variance`."""
    mean = fmean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
