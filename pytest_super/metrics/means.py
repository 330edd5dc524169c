"""Means over the tasks of a run, computed from its results."""

from collections import Counter
from collections.abc import Iterable
from statistics import fmean

from pytest_super.metrics import Metric
from pytest_super.store.results import TrialResult


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known; None if there are none."""
    return weighted_mean((value, 1.0) for value in values)


def weighted_mean(values: Iterable[tuple[float | None, float]]) -> float | None:
    """The mean of the values that are known, with their weights; None if there are none."""
    known = [(value, weight) for value, weight in values if value is not None]
    return fmean((value for value, _ in known), weights=[weight for _, weight in known]) if known else None


def mean_over_tasks(values: Iterable[tuple[TrialResult, float | None]]) -> float | None:
    """The mean of the trials' values that are known; None if there are none.

    Each task counts by its weight, however many of its trials have a value.
    """
    known = [(result, value) for result, value in values if value is not None]
    trials = Counter(result.id for result, _ in known)
    return weighted_mean((value, result.weight / trials[result.id]) for result, value in known)


def mean_with_errors(results: Iterable[TrialResult], metric: Metric) -> float | None:
    """The mean over all tasks. An error counts as the worst value if the metric applies to its task.

    None if no trial has a value.
    """
    return mean_over_tasks((result, value_with_error(result, metric)) for result in results)


def value_with_error(result: TrialResult, metric: Metric) -> float | None:
    if not result.is_error:
        return result.metrics.get(metric.name)
    return metric.value_of_error if metric.name in result.applicable else None
