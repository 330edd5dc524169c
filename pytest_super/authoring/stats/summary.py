"""What a collection of tasks holds, counted as in the tables of the SUPER paper."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from pytest_super.authoring.stats.code_lines import lines_of_cell, lines_of_edit
from pytest_super.sources.release import normalized
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_super.tasks.task import PreExecuted, Task

SETS = ("expert", "masked", "auto", "functions")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Of some numbers; `mean` and `median` are None without any."""

    count: int
    mean: float | None
    median: float | None


@dataclass(frozen=True, kw_only=True)
class TaskSize:
    """How much of each a task has; what it lacks is None."""

    lines: int | None
    """Of gold code."""
    cells: int | None
    """Of gold code."""
    landmarks: int | None
    prefix_steps: int | None
    """Cells and edits that are pre-executed."""
    prefix_lines: int | None


@dataclass(frozen=True, kw_only=True)
class SetStats:
    """The tasks of one set, or of all."""

    set: str
    tasks: int
    repositories: int
    solutions: int
    answers: int
    """Tasks with an answer, to which accuracy applies; the next two likewise."""
    landmark_tasks: int
    entrypoints: int
    lines: Spread
    """Of each solution; and so are cells."""
    cells: Spread
    landmarks: Spread
    """Of each task that has some."""
    prefix_steps: Spread
    """Of each task that has a prefix; and so are its lines."""
    prefix_lines: Spread


@dataclass(frozen=True, kw_only=True)
class CategoryStats:
    """The tasks of one category within a set."""

    set: str
    category: str
    tasks: int
    share: float
    """Of the set's tasks that have a category, from 0 to 1."""
    lines: Spread


@dataclass(frozen=True, kw_only=True)
class Stats:
    sets: list[SetStats]
    """In the order of SETS, only those with tasks; then all tasks together."""
    categories: list[CategoryStats]


def summarise(tasks: Sequence[Task]) -> Stats:
    """Raises TaskFileError where a solution has gone since its task was loaded."""
    sized = [(task, size_of(task)) for task in tasks]
    names = [name for name in SETS if any(task.set == name for task in tasks)]
    groups = [(name, [pair for pair in sized if pair[0].set == name]) for name in names]
    return Stats(
        sets=[set_stats(name, group) for name, group in [*groups, ("all", sized)]],
        categories=[row for name, group in groups for row in category_stats(name, group)],
    )


def size_of(task: Task) -> TaskSize:
    gold = read_solution(task.solution, Path(task._path).parent).cells if task.solution else None
    prefix = task.pre_execute
    return TaskSize(
        lines=sum(map(lines_of_cell, gold)) if gold else None,
        cells=len(gold) if gold else None,
        landmarks=len(task.landmarks) or None,
        prefix_steps=len(prefix) or None,
        prefix_lines=sum(map(lines_of_step, prefix)) if prefix else None,
    )


def lines_of_step(step: PreExecuted) -> int:
    return lines_of_edit(step.edit) if step.edit else lines_of_cell(step.cell or "")


def set_stats(name: str, tasks: Sequence[tuple[Task, TaskSize]]) -> SetStats:
    sizes = [size for _, size in tasks]
    return SetStats(
        set=name,
        tasks=len(tasks),
        repositories=len({repository_of(task) for task, _ in tasks} - {None}),
        solutions=sum(task.solution is not None for task, _ in tasks),
        answers=sum("answer" in task.model_fields_set for task, _ in tasks),
        landmark_tasks=sum(bool(task.landmarks) for task, _ in tasks),
        entrypoints=sum(task.entrypoint is not None for task, _ in tasks),
        lines=spread(size.lines for size in sizes),
        cells=spread(size.cells for size in sizes),
        landmarks=spread(size.landmarks for size in sizes),
        prefix_steps=spread(size.prefix_steps for size in sizes),
        prefix_lines=spread(size.prefix_lines for size in sizes),
    )


def repository_of(task: Task) -> str | None:
    """What tells repositories apart: two commits or releases of one are the same."""
    repository = task.repository
    if repository is None:
        return None
    if repository.git is not None:
        # https://host/a/b.git and git@host:a/b are the same.
        place = re.sub(r"^(?:[\w+]+://)?(?:[^@/]*@)?", "", repository.git).replace(":", "/")
        return place.rstrip("/").removesuffix(".git").lower()
    if repository.pypi is not None:
        return f"pypi:{normalized(repository.pypi)}"
    return str((Path(task._path).parent / (repository.path or "")).resolve())


def category_stats(name: str, tasks: Sequence[tuple[Task, TaskSize]]) -> list[CategoryStats]:
    counts = Counter(task.category for task, _ in tasks if task.category)
    order = sorted(counts, key=lambda category: (position(category), category))
    return [
        CategoryStats(
            set=name,
            category=category,
            tasks=counts[category],
            share=counts[category] / counts.total(),
            lines=spread(size.lines for task, size in tasks if task.category == category),
        )
        for category in order
    ]


def position(category: str) -> int:
    return CATEGORIES.index(category) if category in CATEGORIES else len(CATEGORIES)


def spread(values: Iterable[int | None]) -> Spread:
    known = [value for value in values if value is not None]
    return Spread(
        count=len(known),
        mean=fmean(known) if known else None,
        median=float(median(known)) if known else None,
    )
