"""The means of a run by set and category, computed from results alone."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from statistics import fmean, stdev
from typing import Any

from pytest_super.metrics import Metric
from pytest_super.metrics.accuracy import ACCURACY
from pytest_super.metrics.landmarks import LANDMARKS
from pytest_super.metrics.means import mean_over_tasks
from pytest_super.metrics.script_executed import SCRIPT_EXECUTED
from pytest_super.store.field_declarations import Field
from pytest_super.store.results import TrialResult, result_fields

# Replaces the category in the group of a whole set.
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Some trials. Means are over the valid ones; errors are only counted."""

    results: Sequence[TrialResult]
    set: str = ""
    category: str = ""

    @cached_property
    def valid(self) -> list[TrialResult]:
        return [result for result in self.results if not result.is_error]

    @property
    def trials(self) -> int:
        return len(self.results)

    @property
    def errors(self) -> int:
        return self.trials - len(self.valid)

    def mean_of_field(self, field: Field) -> float | None:
        return mean_over_tasks((result, field.number_of(result)) for result in self.valid)

    def mean(self, metric: str) -> float | None:
        """Compute the mean; None if the metric has a value in no valid trial."""
        return mean_of(self.valid, metric)

    def deviation(self, metric: str) -> float | None:
        """The sample deviation (n - 1) of the epochs' means, as in table 4 of the SUPER paper.

        None if fewer than two whole epochs have a mean.
        """
        epochs = whole_epochs(self.results)
        # The mean of a single one would be computed for nothing.
        means = [mean_of(epoch, metric) for epoch in epochs] if len(epochs) > 1 else []
        known = [value for value in means if value is not None]
        return stdev(known) if len(known) > 1 else None


def metric_names(results: Iterable[TrialResult]) -> list[str]:
    """List the metrics in the order of their columns."""
    return list(dict.fromkeys(name for result in results for name in result.metrics))


def columns() -> list[Field]:
    """The fields of results whose means have a column next to those of the metrics."""
    return [field for field in result_fields() if field.column]


def totals(runs: Collection[TrialResult]) -> Iterator[tuple[Field, float | None]]:
    """The sum of each field that has one; None if no run has a value."""
    for field in result_fields():
        if field.total:
            known = [value for run in runs if (value := field.number_of(run)) is not None]
            yield field, round(sum(known), 6) if known else None


def cause_lines(results: Iterable[TrialResult]) -> Iterator[str]:
    """How many trials each cause of misses has, most frequent first; nothing without any."""
    if counts := Counter(result.cause for result in results if result.cause):
        yield f"causes: {', '.join(f'{count} {cause}' for cause, count in counts.most_common())}"


def mean_of(results: Iterable[TrialResult], metric: str) -> float | None:
    return mean_over_tasks((result, result.metrics.get(metric)) for result in results)


def grouped(results: Iterable[TrialResult], key: Callable[[TrialResult], Any]) -> list[list[TrialResult]]:
    """The results with the same key, in the order of the keys."""
    return [list(own) for _, own in groupby(sorted(results, key=key), key)]


def whole_epochs(results: Iterable[TrialResult]) -> list[list[TrialResult]]:
    """The valid trials of each epoch in which all tasks were tried."""
    epochs = grouped(results, attrgetter("epoch"))
    most = max(map(len, epochs), default=0)
    return [[one for one in epoch if not one.is_error] for epoch in epochs if len(epoch) == most]


def groups(results: Sequence[TrialResult]) -> list[Group]:
    """One group for each set and category, in the order of their names."""
    found = grouped(results, lambda one: (one.set, one.category or ""))
    return [Group(set=own[0].set, category=own[0].category or "", results=own) for own in found]


def rows(results: Sequence[TrialResult]) -> list[Group]:
    """The groups, and the whole set after those of a set with several categories."""
    found: list[Group] = []
    for name in sets(results):
        own = [group for group in groups(results) if group.set == name]
        found += own if len(own) == 1 else [*own, whole_set(name, results)]
    return found


def sets(results: Iterable[TrialResult]) -> list[str]:
    return sorted({result.set for result in results})


def whole_set(name: str, results: Iterable[TrialResult]) -> Group:
    return Group(set=name, category=ALL, results=[result for result in results if result.set == name])


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How often script_executed and another metric agree, over the trials that have both."""

    trials: int
    share: float


def agreements(group: Group) -> dict[str, Agreement | None]:
    """The agreement of script_executed with landmarks and accuracy; None if no valid trial has both.

    As in section 4.3 of the SUPER paper, more than half of the landmarks mean that the script was executed.
    The paper has no bound for accuracy; here it is 1.
    """
    return {
        LANDMARKS.name: agreement(group, LANDMARKS, lambda value: value > 0.5),
        ACCURACY.name: agreement(group, ACCURACY, lambda value: value == 1.0),
    }


def agreement(group: Group, metric: Metric, says_yes: Callable[[float], bool]) -> Agreement | None:
    both = (
        (result.metrics.get(SCRIPT_EXECUTED.name), result.metrics.get(metric.name)) for result in group.valid
    )
    same = [
        (executed == 1.0) == says_yes(value)
        for executed, value in both
        if executed is not None and value is not None
    ]
    return Agreement(trials=len(same), share=fmean(same)) if same else None
