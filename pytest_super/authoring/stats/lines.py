"""The tables that `pytest-super stats` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.authoring.stats.summary import CategoryStats, SetStats, Spread, Stats


def stats_lines(stats: Stats) -> Iterator[str]:
    yield from size_lines(stats.sets)
    yield from evaluation_lines(stats.sets)
    yield from solution_lines(stats.sets)
    if stats.categories:
        yield from category_lines(stats.categories)


def size_lines(rows: Sequence[SetStats]) -> Iterator[str]:
    yield "tasks and repositories (SUPER, table 1)"
    yield f"{'set':<12}{'repositories':>14}{'tasks':>10}"
    for row in rows:
        yield f"{row.set:<12}{row.repositories:>14}{row.tasks:>10}"


def evaluation_lines(rows: Sequence[SetStats]) -> Iterator[str]:
    yield ""
    yield "tasks with a solution, and to which each metric applies (table 2)"
    yield f"{'set':<12}{'solution':>14}{'accuracy':>10}{'landmarks':>11}{'script_executed':>17}"
    for row in rows:
        metrics = f"{row.answers:>10}{row.landmark_tasks:>11}{row.entrypoints:>17}"
        yield f"{row.set:<12}{row.solutions:>14}{metrics}"


def solution_lines(rows: Sequence[SetStats]) -> Iterator[str]:
    yield ""
    yield "size of solutions, landmarks and prefixes: mean (median) of those that have one (section 3.4)"
    yield f"{'set':<12}{'lines':>14}{'cells':>14}{'landmarks':>14}{'prefix steps':>14}{'prefix lines':>14}"
    for row in rows:
        spreads = (row.lines, row.cells, row.landmarks, row.prefix_steps, row.prefix_lines)
        yield f"{row.set:<12}" + "".join(f"{told(spread):>14}" for spread in spreads)


def category_lines(rows: Sequence[CategoryStats]) -> Iterator[str]:
    yield ""
    yield "categories, with the lines of their solutions: mean (median) (table 3)"
    yield f"{'set':<12}{'category':<16}{'tasks':>6}{'portion':>10}{'lines':>14}"
    for row in rows:
        yield f"{row.set:<12}{row.category:<16}{row.tasks:>6}{row.share:>10.1%}{told(row.lines):>14}"


def told(spread: Spread) -> str:
    return "-" if spread.mean is None else f"{spread.mean:.1f} ({spread.median:g})"
