"""Counts the content of a collection of tasks, as in the tables of the SUPER paper."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean, median

from pytest_super.options import SETS
from pytest_super.report.table import table_lines
from pytest_super.sources.release import normalized
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import CATEGORIES, Task

SIZES = ("lines", "cells", "landmarks")
"""The sizes of a task: lines and cells of its gold code, landmarks. It has only those that apply to it."""
SizedTask = tuple[Task, dict[str, int]]


def stats_lines(tasks: Sequence[Task]) -> Iterator[str]:
    """The tables, of each set and of all. Raises TaskFileError if a solution vanishes while it is counted."""
    sized = [(task, sizes_of(task)) for task in tasks]
    sets = {name: [pair for pair in sized if pair[0].set == name] for name in SETS}
    sets = {**{name: group for name, group in sets.items() if group}, "all": sized}
    yield "tasks and repositories (SUPER, table 1)"
    repositories = {name: {repository_of(task) for task, _ in group} - {None} for name, group in sets.items()}
    rows = [(name, str(len(repositories[name])), str(len(group))) for name, group in sets.items()]
    yield from table_lines([("set", "repositories", "tasks"), *rows])
    yield "\ntasks with a solution, and tasks to which each metric applies (table 2)"
    heads = ("set", "solution", "accuracy", "landmarks", "script_executed")
    yield from table_lines([heads, *((name, *metric_cells(group)) for name, group in sets.items())])
    yield "\nsize of solutions and landmarks, where there are any: mean (median) (section 3.4)"
    spreads = [(name, *(spread(one, group) for one in SIZES)) for name, group in sets.items()]
    yield from table_lines([("set", *SIZES), *spreads])
    if categories := [row for name in sets if name != "all" for row in category_rows(name, sets[name])]:
        yield "\ncategories, with the lines of their solutions: mean (median) (table 3)"
        yield from table_lines([("set", "category", "tasks", "portion", "lines"), *categories], texts=2)


def sizes_of(task: Task) -> dict[str, int]:
    sizes: dict[str, int] = {}
    if task.solution:
        gold = read_solution(task.solution, task.folder).cells
        sizes |= {"lines": sum(map(lines_of_cell, gold)), "cells": len(gold)}
    if task.landmarks:
        sizes["landmarks"] = len(task.landmarks)
    return sizes


def lines_of_cell(source: str) -> int:
    """Lines that are neither blank nor a comment; lines of a shell and magics count."""
    return sum(not line.lstrip().startswith("#") for line in source.splitlines() if line.strip())


def spread(size: str, tasks: Sequence[SizedTask]) -> str:
    """The mean and the median over the tasks that have the size."""
    known = [sizes[size] for _, sizes in tasks if size in sizes]
    return f"{fmean(known):.1f} ({float(median(known)):g})" if known else "-"


def metric_cells(tasks: Sequence[SizedTask]) -> list[str]:
    counts = (
        sum(task.solution is not None for task, _ in tasks),
        sum(task.has_answer for task, _ in tasks),
        sum(bool(task.landmarks) for task, _ in tasks),
        sum(task.entrypoint is not None for task, _ in tasks),
    )
    return list(map(str, counts))


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


def category_rows(name: str, tasks: Sequence[SizedTask]) -> Iterator[tuple[str, ...]]:
    """The rows of a set, in the paper's order, with their shares of the set's tasks that have a category."""
    counts = Counter(task.category for task, _ in tasks if task.category)
    order = [*(one for one in CATEGORIES if one in counts), *sorted(counts.keys() - set(CATEGORIES))]
    for category in order:
        own = [pair for pair in tasks if pair[0].category == category]
        share = counts[category] / counts.total()
        yield name, category, str(counts[category]), f"{share:.1%}", spread("lines", own)
