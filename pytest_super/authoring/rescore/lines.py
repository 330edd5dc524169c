"""The text that the command prints: a table for each agent, differences, unreadable files, totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_super.authoring.rescore.results import NewResult, NewResults
from pytest_super.authoring.rescore.scores import Rescored
from pytest_super.metrics.means import mean, mean_over_tasks
from pytest_super.metrics.registry import installed_metrics
from pytest_super.metrics.submitted import SUBMITTED
from pytest_super.report.table import table_lines
from pytest_super.report.terminal import figure
from pytest_super.words import counted, one_line

Group = tuple[str, str]
COLUMNS = ("published", "reference", "paper")


def rescore_lines(rescored: Sequence[Rescored], broken: Sequence[str]) -> Iterator[str]:
    for group, trials in by_agent(rescored).items():
        yield from trial_lines(group, trials)
        yield ""
    for one in rescored:
        for metric, reasons in one.differences.items():
            values = ", ".join(map(" ".join, zip(COLUMNS, cells(one, metric), strict=True)))
            yield one_line(
                f"differs {one.trial.group[0]} {one.name} {metric}: {values}: {'; '.join(reasons)}"
            )
    yield from unknown_lines(rescored)
    for message in broken:
        yield one_line(f"broken  {message}")
    yield ""
    yield from total_lines(totals(rescored))


def new_run_lines(found: NewResults, folder: Path) -> Iterator[str]:
    """What the rescored run in `folder` has otherwise than the one that it was made of."""
    changes = {one.new.name: changes_of(one) for one in found.results}
    changed = [f"changed {name}: {', '.join(each)}" for name, each in changes.items() if each]
    yield from map(one_line, changed)
    for reason, names in found.left_out.items():
        yield one_line(f"left out {', '.join(names)}: {reason}")
    valid = [one for one in found.results if not one.new.is_error]
    parts = [f"{counted(len(valid), 'trial')} scored again", f"{len(changed)} changed"]
    if errors := len(found.results) - len(valid):
        parts.append(counted(errors, "error"))
    if left_out := sum(map(len, found.left_out.values())):
        parts.append(f"{left_out} left out")
    before = mean_over_tasks((one.old, float(one.old.solved)) for one in valid)
    after = mean_over_tasks((one.new, float(one.new.solved)) for one in valid)
    yield f"{', '.join(parts)}; solved {figure(before)} -> {figure(after)}"
    yield f"results: {folder}"


def changes_of(one: NewResult) -> list[str]:
    before = one.old.metrics
    changes = [
        f"{name} {figure(before.get(name))} -> {figure(value)}"
        for name, value in one.new.metrics.items()
        if before.get(name) != value
    ]
    if one.old.solved != one.new.solved:
        changes.append("solved" if one.new.solved else "no longer solved")
    return changes


def by_agent(rescored: Sequence[Rescored]) -> dict[Group, list[Rescored]]:
    groups: dict[Group, list[Rescored]] = {}
    for one in sorted(rescored, key=lambda one: (one.trial.group, one.name)):
        groups.setdefault(one.trial.group, []).append(one)
    return groups


def trial_lines(group: Group, trials: Sequence[Rescored]) -> Iterator[str]:
    yield one_line(" ".join(filter(None, group)))
    names = metric_names(trials)
    rows = [
        ["", *(head for metric in names for head in (metric, "", ""))],
        ["task", *("published", "ref.", "paper") * len(names)],
        *([one.name, *(cell for metric in names for cell in cells(one, metric))] for one in trials),
    ]
    yield from map(one_line, table_lines(rows))


def metric_names(rescored: Sequence[Rescored]) -> list[str]:
    """The metrics that have a figure in one of the trials."""
    return [
        metric.name
        for metric in installed_metrics()
        if any(metric.is_told(value) for one in rescored for value in one.figures(metric.name))
    ]


def cells(one: Rescored, metric: str) -> list[str]:
    return [figure(value) for value in one.figures(metric)]


def unknown_lines(rescored: Sequence[Rescored]) -> Iterator[str]:
    """The trials that are not scored, and why."""
    for one in rescored:
        if error := one.trial.result.error:
            yield one_line(f"error   {one.trial.path}: not scored: {error}")
    unknown = sorted({one.trial.result.id for one in rescored if lacks_answer(one)})
    if unknown:
        names = ", ".join(unknown)
        yield one_line(f"unknown no answer is given for {counted(len(unknown), 'task')}: {names}")


def lacks_answer(one: Rescored) -> bool:
    """Whether there is nothing to score it against; not every task has an answer."""
    if one.trial.result.is_error:
        return False
    # `submitted` applies to every task.
    is_unknown = one.paper.keys() <= {SUBMITTED.name}
    return is_unknown or (one.figures("accuracy")[0] is not None and "accuracy" not in one.paper)


def total_lines(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    heads = ("n", "published", "compared", "published", "reference", "paper", "differ")
    rows: list[tuple[str, ...]] = [("totals", "metric", *heads)]
    for one in found:
        counts = (str(one["trials"]), figure(one["all_published"]), str(one["compared"]))
        means = (figure(one[column]) for column in COLUMNS)
        name = " ".join(filter(None, (one["agent"], one["set"])))
        rows.append((name, one["metric"], *counts, *means, str(one["different"])))
    yield from map(one_line, table_lines(rows, texts=2))


def totals(rescored: Sequence[Rescored]) -> list[dict[str, Any]]:
    """The means of each metric over the trials of one agent in one set."""
    names = metric_names(rescored)
    return [total(group, metric, trials) for group, trials in by_agent(rescored).items() for metric in names]


def total(group: Group, metric: str, trials: Sequence[Rescored]) -> dict[str, Any]:
    """The means of the columns over the trials that have all, without the published one if none has that."""
    rows = [one.figures(metric) for one in trials]
    all_published = mean(row[0] for row in rows)
    needed = slice(0 if all_published is not None else 1, None)
    compared = [row for row in rows if None not in row[needed]]
    return {
        "agent": group[0],
        "set": group[1],
        "metric": metric,
        "trials": len(trials),
        "all_published": all_published,
        "compared": len(compared),
        **{name: mean(row[column] for row in compared) for column, name in enumerate(COLUMNS)},
        "different": sum(metric in one.differences for one in trials),
    }


def rescore_data(rescored: Sequence[Rescored], broken: Sequence[str]) -> dict[str, Any]:
    """The same as plain JSON values, with no text shortened."""
    return {
        "trajectories": [one_data(one) for one in rescored],
        "totals": totals(rescored),
        "broken": list(broken),
    }


def one_data(one: Rescored) -> dict[str, Any]:
    result = one.trial.result
    names = [metric.name for metric in installed_metrics()]
    return {
        "file": str(one.trial.path),
        "task": result.id,
        "epoch": result.epoch,
        "agent": one.trial.group[0],
        "set": result.set,
        "error": result.error,
        "submitted": one.trial.submit_step is not None,
        "scores": {metric: dict(zip(COLUMNS, one.figures(metric), strict=True)) for metric in names},
        "differences": one.differences,
    }
