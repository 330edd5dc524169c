"""Counts the content of a collection of tasks, and prints tables as in the SUPER paper."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

from pytest_super.authoring.stats.code_lines import lines_of_cell, lines_of_edit
from pytest_super.options import SETS
from pytest_super.report.table import table_lines
from pytest_super.sources.release import normalized
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_super.tasks.task import PreExecuted, Task

SIZES = ("lines", "cells", "landmarks", "prefix_steps", "prefix_lines")
"""The sizes of a task: lines and cells of its gold code, landmarks, pre-executed steps, lines of these.

A task has only those that apply to it.
"""
PAPER_SIZES = ("functions", "experiments", "values")
"""Those of a paper."""
Sizes = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Count, mean and median of some numbers; without numbers mean and median are None."""

    count: int
    mean: float | None
    median: float | None


@dataclass(frozen=True, kw_only=True)
class SetStats:
    """The tasks of one set, or of all."""

    set: str
    tasks: int
    repositories: int
    solutions: int
    answers: int
    """Tasks with an answer, to which accuracy applies."""
    landmark_tasks: int
    entrypoints: int
    sizes: dict[str, Spread]
    """Each of the SIZES and PAPER_SIZES, over the tasks that have it."""


@dataclass(frozen=True, kw_only=True)
class CategoryStats:
    """The tasks of one category within a set."""

    set: str
    category: str
    tasks: int
    share: float
    """Among the set's tasks that have a category, from 0 to 1."""
    lines: Spread


@dataclass(frozen=True, kw_only=True)
class Stats:
    sets: list[SetStats]
    """The sets that have tasks, in the order of SETS, and then all tasks together."""
    categories: list[CategoryStats]


def summarise(tasks: Sequence[Task]) -> Stats:
    """Raises TaskFileError when a solution has vanished since its task was loaded."""
    sized = [(task, sizes_of(task)) for task in tasks]
    names = [name for name in SETS if any(task.set == name for task in tasks)]
    groups = [(name, [pair for pair in sized if pair[0].set == name]) for name in names]
    return Stats(
        sets=[set_stats(name, group) for name, group in [*groups, ("all", sized)]],
        categories=[row for name, group in groups for row in category_stats(name, group)],
    )


def sizes_of(task: Task) -> Sizes:
    sizes: Sizes = {}
    if task.solution:
        gold = read_solution(task.solution, task.folder).cells
        sizes |= {"lines": sum(map(lines_of_cell, gold)), "cells": len(gold)}
    if task.landmarks:
        sizes["landmarks"] = len(task.landmarks)
    if prefix := task.pre_execute:
        sizes |= {"prefix_steps": len(prefix), "prefix_lines": sum(map(lines_of_step, prefix))}
    if task.functions:
        values = sum(len(one.reported) for one in task.experiments)
        counts = (len(task.functions), len(task.experiments), values)
        sizes |= dict(zip(PAPER_SIZES, counts, strict=True))
    return sizes


def lines_of_step(step: PreExecuted) -> int:
    return lines_of_edit(step.edit) if step.edit else lines_of_cell(step.cell or "")


def set_stats(name: str, tasks: Sequence[tuple[Task, Sizes]]) -> SetStats:
    return SetStats(
        set=name,
        tasks=len(tasks),
        repositories=len({repository_of(task) for task, _ in tasks} - {None}),
        solutions=sum(task.solution is not None for task, _ in tasks),
        answers=sum(task.has_answer for task, _ in tasks),
        landmark_tasks=sum(bool(task.landmarks) for task, _ in tasks),
        entrypoints=sum(task.entrypoint is not None for task, _ in tasks),
        sizes={size: spread_of(size, tasks) for size in SIZES + PAPER_SIZES},
    )


def repository_of(task: Task) -> str | None:
    """A name of the repository without its commit or release; None when the task has no repository."""
    repository = task.repository
    if repository is None:
        return None
    if repository.git is not None:
        # https://host/a/b.git and git@host:a/b are the same.
        place = re.sub(r"^(?:[\w+]+://)?(?:[^@/]*@)?", "", repository.git).replace(":", "/")
        return place.rstrip("/").removesuffix(".git").lower()
    if repository.pypi is not None:
        return f"pypi:{normalized(repository.pypi)}"
    return str((task.folder / (repository.path or "")).resolve())


def category_stats(name: str, tasks: Sequence[tuple[Task, Sizes]]) -> list[CategoryStats]:
    counts = Counter(task.category for task, _ in tasks if task.category)
    order = [*(name for name in CATEGORIES if name in counts), *sorted(counts.keys() - set(CATEGORIES))]
    return [
        CategoryStats(
            set=name,
            category=category,
            tasks=counts[category],
            share=counts[category] / counts.total(),
            lines=spread_of("lines", [pair for pair in tasks if pair[0].category == category]),
        )
        for category in order
    ]


def spread_of(name: str, tasks: Iterable[tuple[Task, Sizes]]) -> Spread:
    """A size, over the tasks that have it."""
    known = [sizes[name] for _, sizes in tasks if name in sizes]
    return Spread(
        count=len(known),
        mean=fmean(known) if known else None,
        median=float(median(known)) if known else None,
    )


def stats_lines(stats: Stats) -> Iterator[str]:
    yield "tasks and repositories (SUPER, table 1)"
    yield from size_lines(stats.sets)
    yield "\ntasks with a solution, and tasks to which each metric applies (table 2)"
    yield from metric_lines(stats.sets)
    yield "\nsize of solutions, landmarks and prefixes, where there are any: mean (median) (section 3.4)"
    yield from spread_lines(stats.sets, SIZES)
    if papers := [one for one in stats.sets if one.sizes["functions"].count]:
        yield "\nsize of papers: mean (median)"
        yield from spread_lines(papers, PAPER_SIZES)
    if stats.categories:
        yield "\ncategories, with the lines of their solutions: mean (median) (table 3)"
        yield from category_lines(stats.categories)


def size_lines(sets: Sequence[SetStats]) -> Iterator[str]:
    rows = [(one.set, str(one.repositories), str(one.tasks)) for one in sets]
    return table_lines([("set", "repositories", "tasks"), *rows])


def metric_lines(sets: Sequence[SetStats]) -> Iterator[str]:
    rows = [
        (one.set, *map(str, (one.solutions, one.answers, one.landmark_tasks, one.entrypoints)))
        for one in sets
    ]
    return table_lines([("set", "solution", "accuracy", "landmarks", "script_executed"), *rows])


def spread_lines(sets: Sequence[SetStats], sizes: Sequence[str]) -> Iterator[str]:
    rows = [(one.set, *(shown(one.sizes[size]) for size in sizes)) for one in sets]
    return table_lines([("set", *(size.replace("_", " ") for size in sizes)), *rows])


def category_lines(categories: Sequence[CategoryStats]) -> Iterator[str]:
    rows = [
        (one.set, one.category, str(one.tasks), f"{one.share:.1%}", shown(one.lines)) for one in categories
    ]
    return table_lines([("set", "category", "tasks", "portion", "lines"), *rows], texts=2)


def shown(spread: Spread) -> str:
    return "-" if spread.mean is None else f"{spread.mean:.1f} ({spread.median:g})"
