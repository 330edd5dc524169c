"""The tables that `pytest-super stats` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.stats.summary import SIZES
from pytest_super.report.table import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.authoring.stats.summary import CategoryStats, SetStats, Spread, Stats


def stats_lines(stats: Stats) -> Iterator[str]:
    yield "tasks and repositories (SUPER, table 1)"
    yield from size_lines(stats.sets)
    yield "\ntasks with a solution, and tasks to which each metric applies (table 2)"
    yield from metric_lines(stats.sets)
    yield "\nsize of solutions, landmarks and prefixes, where there are any: mean (median) (section 3.4)"
    yield from solution_lines(stats.sets)
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


def solution_lines(sets: Sequence[SetStats]) -> Iterator[str]:
    rows = [(one.set, *map(shown, one.sizes.values())) for one in sets]
    return table_lines([("set", *(size.replace("_", " ") for size in SIZES)), *rows])


def category_lines(categories: Sequence[CategoryStats]) -> Iterator[str]:
    rows = [
        (one.set, one.category, str(one.tasks), f"{one.share:.1%}", shown(one.lines)) for one in categories
    ]
    return table_lines([("set", "category", "tasks", "portion", "lines"), *rows], texts=2)


def shown(spread: Spread) -> str:
    return "-" if spread.mean is None else f"{spread.mean:.1f} ({spread.median:g})"
