"""The figures of a run: means by set and category, over results alone."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_super.results import TrialResult


@dataclass(frozen=True, kw_only=True)
class Group:
    """Some trials and their means. A metric that applies to none of them has the mean None."""

    set: str
    category: str
    trials: int
    errors: int
    accuracy: float | None
    landmarks: float | None
    script_executed: float | None
    submitted: float | None
    solved: float | None


def summarise(results: Iterable[TrialResult], *, set_name: str = "", category: str = "") -> Group:
    """Means over the valid trials; errors are counted apart."""
    results = list(results)
    valid = [result for result in results if not result.is_error]
    return Group(
        set=set_name,
        category=category,
        trials=len(results),
        errors=len(results) - len(valid),
        accuracy=mean(valid, lambda result: result.accuracy),
        landmarks=mean(valid, lambda result: result.landmarks),
        script_executed=mean(valid, lambda result: result.script_executed),
        submitted=mean(valid, lambda result: float(result.submitted)),
        solved=mean(valid, lambda result: float(result.solved)),
    )


def groups(results: Iterable[TrialResult]) -> list[Group]:
    """One group for each set and category, in the order of their names."""
    results = list(results)
    keys = sorted({(result.set, result.category or "") for result in results})
    return [
        summarise(
            (result for result in results if (result.set, result.category or "") == (set_name, category)),
            set_name=set_name,
            category=category,
        )
        for set_name, category in keys
    ]


def mean(results: list[TrialResult], metric: Callable[[TrialResult], float | None]) -> float | None:
    values = [value for value in map(metric, results) if value is not None]
    return fmean(values) if values else None


def gate_accuracy(results: Iterable[TrialResult]) -> float | None:
    """What --super-fail-under compares: mean accuracy with an error as 0; None when no trial has accuracy."""
    values = [0.0 if result.is_error else result.accuracy for result in results if result.has_answer]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def is_reached(accuracy: float | None, fail_under: float) -> bool:
    """Whether the gate is passed; a mean of floats may miss a threshold that it equals by its last bit."""
    return accuracy is not None and accuracy >= fail_under - 1e-9
