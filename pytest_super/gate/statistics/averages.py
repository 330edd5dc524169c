"""Means in which each task counts alike, however often it was tried."""

from collections import Counter
from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple


class OfTask(NamedTuple):
    """The value of one trial; None if it is not known."""

    task: str
    weight: float
    value: float | None


def weighted_mean(values: Iterable[tuple[float | None, float]]) -> float | None:
    """The mean of the values that are known, with their weights; None if there are none."""
    known = [(value, weight) for value, weight in values if value is not None]
    return fmean((value for value, _ in known), weights=[weight for _, weight in known]) if known else None


def task_mean(values: Iterable[OfTask]) -> float | None:
    """Each task counts by its weight, however many of its trials have a value; None if none has one."""
    known = [one for one in values if one.value is not None]
    trials = Counter(one.task for one in known)
    return weighted_mean((one.value, one.weight / trials[one.task]) for one in known)
