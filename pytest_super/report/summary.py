"""The figures of a run: means by set and category, over results alone."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_super.store.results import TrialResult

    Metric = Callable[[TrialResult], float | None]
    Verdict = Callable[[TrialResult], bool | None]

# In the place of a category: the trials of a whole set.
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Of the trials with both script_executed and another metric, the portion where they say the same."""

    trials: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Group:
    """Some trials and their means. A metric that applies to none of them has the mean None.

    A deviation is that of the epochs' means; None where fewer than two epochs have one.
    """

    set: str
    category: str
    trials: int
    errors: int
    accuracy: float | None
    landmarks: float | None
    script_executed: float | None
    submitted: float | None
    solved: float | None
    accuracy_deviation: float | None = None
    landmarks_deviation: float | None = None
    script_executed_deviation: float | None = None
    with_landmarks: Agreement | None = None
    with_accuracy: Agreement | None = None


def summarise(results: Iterable[TrialResult], *, set_name: str = "", category: str = "") -> Group:
    """Means over the valid trials; errors are counted apart."""
    results = list(results)
    valid = [result for result in results if not result.is_error]
    return Group(
        set=set_name,
        category=category,
        trials=len(results),
        errors=len(results) - len(valid),
        accuracy=mean(valid, accuracy),
        landmarks=mean(valid, landmarks),
        script_executed=mean(valid, script_executed),
        submitted=mean(valid, lambda result: float(result.submitted)),
        solved=mean(valid, lambda result: float(result.solved)),
        accuracy_deviation=deviation(valid, accuracy),
        landmarks_deviation=deviation(valid, landmarks),
        script_executed_deviation=deviation(valid, script_executed),
        with_landmarks=agreement(valid, lambda result: above_half(result.landmarks)),
        with_accuracy=agreement(valid, lambda result: is_whole(result.accuracy)),
    )


def accuracy(result: TrialResult) -> float | None:
    return result.accuracy


def landmarks(result: TrialResult) -> float | None:
    return result.landmarks


def script_executed(result: TrialResult) -> float | None:
    return result.script_executed


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


def rows(results: Iterable[TrialResult]) -> list[Group]:
    """The groups, and below those of a set with several categories the set as a whole."""
    results = list(results)
    found: list[Group] = []
    for name in sets(results):
        own = [group for group in groups(results) if group.set == name]
        found += own if len(own) == 1 else [*own, whole_set(name, results)]
    return found


def sets(results: Iterable[TrialResult]) -> list[str]:
    return sorted({result.set for result in results})


def whole_set(name: str, results: Iterable[TrialResult]) -> Group:
    return summarise((result for result in results if result.set == name), set_name=name, category=ALL)


def mean(results: Iterable[TrialResult], metric: Metric) -> float | None:
    values = [value for value in map(metric, results) if value is not None]
    return fmean(values) if values else None


def deviation(results: list[TrialResult], metric: Metric) -> float | None:
    """The sample deviation (n - 1) of the epochs' means, as in table 4 of the SUPER paper."""
    epochs = sorted({result.epoch for result in results})
    means = [mean((result for result in results if result.epoch == epoch), metric) for epoch in epochs]
    known = [value for value in means if value is not None]
    return stdev(known) if len(known) > 1 else None


def agreement(
    results: Iterable[TrialResult], verdict: Callable[[TrialResult], bool | None]
) -> Agreement | None:
    """How often script_executed says the same as `verdict`; None where no trial has both.

    Section 4.3 of the SUPER paper judges its proxy metric so.
    """
    said = [(result.script_executed == 1.0, verdict(result)) for result in results if has_executed(result)]
    same = [ours == theirs for ours, theirs in said if theirs is not None]
    return Agreement(trials=len(same), share=fmean(same)) if same else None


def has_executed(result: TrialResult) -> bool:
    return result.script_executed is not None


def above_half(value: float | None) -> bool | None:
    return None if value is None else value > 0.5


def is_whole(value: float | None) -> bool | None:
    return None if value is None else value == 1.0


def epochs_of(results: Iterable[TrialResult]) -> dict[int, frozenset[str]]:
    """The tasks of which each epoch has a valid trial."""
    valid: dict[int, set[str]] = {}
    for result in results:
        valid.setdefault(result.epoch, set()).update([] if result.is_error else [result.id])
    return {epoch: frozenset(tasks) for epoch, tasks in valid.items()}


def gate_accuracy(results: Iterable[TrialResult]) -> float | None:
    """What --super-fail-under compares: mean accuracy with an error as 0; None when no trial has accuracy."""
    values = [0.0 if result.is_error else result.accuracy for result in results if result.has_answer]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def is_reached(accuracy: float | None, fail_under: float) -> bool:
    """Whether the gate is passed; a mean of floats may miss a threshold that it equals by its last bit."""
    return accuracy is not None and accuracy >= fail_under - 1e-9
