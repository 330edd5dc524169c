"""The figures of a run, computed from its results: means over tasks, and what a gate can bound."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from pytest_super.errors import SuperError
from pytest_super.gate.errors import MAX_ERRORS, are_too_many
from pytest_super.metrics import Metric
from pytest_super.metrics.means import mean, mean_over_tasks, mean_with_errors
from pytest_super.store.results import TrialResult
from pytest_super.tasks.task import Task
from pytest_super.words import did_you_mean


def without_interrupted(results: Iterable[TrialResult]) -> list[TrialResult]:
    """The trials that ended by themselves. The others say nothing about the agent."""
    return [result for result in results if not result.is_interrupted]


def why_invalid(results: Iterable[TrialResult], max_errors: float | None) -> str:
    """Why the figures are invalid: the share of errors is above `max_errors`. Empty if they are valid."""
    ended = without_interrupted(results)
    errors = sum(one.is_error for one in ended)
    limit = MAX_ERRORS if max_errors is None else max_errors
    if not are_too_many(errors, len(ended), limit):
        return ""
    return (
        f"{errors} of {len(ended)} trials are infrastructure errors, more than {100 * limit:.3g} %, so the "
        "run fails: run them again (--super-resume=latest)"
    )


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number of a run that can be bounded."""

    name: str
    of: Callable[[Sequence[TrialResult]], float | None]
    """None if no trial has a value."""
    higher_is_better: bool = True


def figure_of(name: str, metrics: Sequence[Metric], given: str) -> Figure:
    """Raises SuperError if no figure has this name."""
    known = {metric.name: mean_figure(metric) for metric in metrics} | USED
    if name in known:
        return known[name]
    kind, dot, category = name.partition(".")
    if kind == "category" and dot and category:
        return Figure(name=name, of=partial(headline_of_category, category))
    meant = did_you_mean(name, known)
    names = ", ".join([*known, "category.NAME"])
    raise SuperError(f"{given}: there is no such figure: choose from {names}{meant}")


def names_of_figures(metrics: Iterable[Metric], tasks: Collection[Task]) -> list[str]:
    """The figures that trials of the tasks can have."""
    applicable = [metric.name for metric in metrics if any(map(metric.applies, tasks))]
    categories = {task.category for task in tasks if task.category}
    return [*applicable, *USED, *(f"category.{name}" for name in sorted(categories))]


def can_have(name: str, result: TrialResult) -> bool:
    """Whether the trial can have a value of the figure, as `names_of_figures` says of its task."""
    return name in (*result.applicable, *USED, f"category.{result.category}")


def mean_figure(metric: Metric) -> Figure:
    return Figure(
        name=metric.name,
        of=lambda results: mean_with_errors(results, metric),
        higher_is_better=metric.higher_is_better,
    )


def headline_of_category(category: str, results: Sequence[TrialResult]) -> float | None:
    """The mean of what decides whether the tasks of a category are solved; an error counts as 0."""
    return mean_over_tasks(
        (one, 0.0 if one.is_error else one.headline_value) for one in results if one.category == category
    )


USED = {
    f"{name}_per_task": Figure(name=f"{name}_per_task", of=of, higher_is_better=False)
    for name, of in (
        ("cost", lambda results: mean(one.cost_usd for one in results)),
        ("tokens", lambda results: mean(one.tokens for one in results)),
    )
}
"""What a trial of a task uses, as a mean over all trials, errors included."""
