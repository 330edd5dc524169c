"""The numbers of the page: the terminal's table with intervals, and the headline of each category."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import fmean

from pytest_super.metrics.means import mean_over_tasks
from pytest_super.metrics.metric import Metric
from pytest_super.metrics.registry import installed_metrics
from pytest_super.report.summary import ALL, Group, columns, metric_names, rows
from pytest_super.report.terminal import heads_of, is_used, means_of
from pytest_super.store.results import TrialResult


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A mean as text, with the bounds of its interval, if it has one."""

    text: str
    bounds: tuple[float, float] | None = None

    @property
    def interval(self) -> str:
        return "" if self.bounds is None else f"{self.bounds[0]:.2f} to {self.bounds[1]:.2f}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A set, a category, or everything."""

    group: Group
    figures: list[Figure]
    """Each field that has a column, then each metric."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """The mean of the headline metric in one row of the table, from 0 to 1."""

    name: str
    trials: int
    value: float
    bounds: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The table, and the levels that are drawn."""

    heads: list[str]
    rows: list[Row]
    levels: list[Level]


def figures_of(results: Sequence[TrialResult]) -> Figures:
    """The numbers of trials that have ended."""
    metrics = [one for one in metrics_of(results) if any(is_used(one, result) for result in results)]
    groups = rows(results)
    if len({group.set for group in groups}) > 1:
        groups.append(Group(set=ALL, results=results))
    levels = map(level_of, groups)
    return Figures(
        heads=heads_of(metrics),
        rows=[row_of(group, metrics) for group in groups],
        levels=[level for level in levels if level is not None],
    )


def headline_of(results: Sequence[TrialResult]) -> str:
    """What the headlines of all trials are called."""
    names = {one.headline for one in results}
    return names.pop() if len(names) == 1 else "headline metric"


def metrics_of(results: Sequence[TrialResult]) -> list[Metric]:
    """The metrics of the results, in their order. Those of a project are only known by name."""
    known = {metric.name: metric for metric in installed_metrics()}
    return [
        known.get(name) or Metric(name=name, compute=lambda _task, _evidence: None)
        for name in metric_names(results)
    ]


def row_of(group: Group, metrics: Sequence[Metric]) -> Row:
    readers = [*(one.number_of for one in columns()), *(metric_reader(one.name) for one in metrics)]
    figures = [
        Figure(text=text, bounds=bounds_of(group.valid, reader))
        for text, reader in zip(means_of(group, metrics), readers, strict=True)
    ]
    return Row(group=group, figures=figures)


def metric_reader(name: str) -> Callable[[TrialResult], float | None]:
    return lambda result: result.metrics.get(name)


def level_of(group: Group) -> Level | None:
    """Return the level of a row; None if the headline metric has no value, or one that is not from 0 to 1."""
    known = [(one, value) for one in group.valid if (value := one.headline_value) is not None]
    if not known or not all(0 <= value <= 1 for _, value in known):
        return None
    return Level(
        name=f"{group.set} {group.category}".strip(),
        trials=len(known),
        value=mean_over_tasks(known) or 0.0,
        bounds=bounds_of(group.valid, lambda one: one.headline_value),
    )


def bounds_of(
    results: Sequence[TrialResult], value_of: Callable[[TrialResult], float | None]
) -> tuple[float, float] | None:
    """The interval of 90 % of the mean, for tasks that are a sample of all such tasks.

    None without scipy, for less than two tasks, which say nothing of others, and for values that are not from
    0 to 1.
    """
    if find_spec("scipy") is None:
        return None
    from pytest_super.report.page.interval import TaskMean, general_mean

    by_task: dict[str, list[float]] = {}
    tasks: dict[str, TrialResult] = {}
    for result in results:
        if (value := value_of(result)) is not None:
            by_task.setdefault(result.id, []).append(value)
            tasks[result.id] = result
    if len(by_task) < 2 or not all(0 <= value <= 1 for values in by_task.values() for value in values):
        return None
    found = general_mean(
        [
            TaskMean(
                value=fmean(own), cluster=tasks[id].repository or id, weight=tasks[id].weight, trials=len(own)
            )
            for id, own in by_task.items()
        ]
    )
    return found.low, found.high
