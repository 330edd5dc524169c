"""What a collection found: the list of --collect-only, and a hint where -k selects more than a category."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_super.budget import budget_for
from pytest_super.report.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import pytest

    from pytest_super.collection import TaskItem


def collected_lines(config: pytest.Config, items: list[TaskItem]) -> list[str]:
    lines = list(keyword_hints(config.option.keyword, ((item.task.id, item.task.category) for item in items)))
    if config.option.collectonly and config.option.verbose >= 0:
        lines += table(items)
    return lines


def category_hints(wanted: Iterable[str], categories: Collection[str | None]) -> Iterator[str]:
    """Where no task is of a category that --super-category names; `categories` are those of all tasks."""
    known = ", ".join(sorted(category for category in categories if category))
    for category in wanted:
        if category not in categories:
            yield f"--super-category={category} selects no task: the categories here are {known or 'none'}"


def keyword_hints(expression: str, tasks: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """Where a word of -k is a category, but -k, which matches parts of words, selects other tasks too."""
    tasks = list(tasks)
    categories = {category for _, category in tasks if category}
    for word in sorted(set(re.findall(r"[\w-]+", expression)) & categories):
        others = sum(category != word for _, category in tasks)
        if others:
            exact = f"--super-category={word} is exact"
            yield f"-k {word} also selects {counted(others, 'task')} outside the category: {exact}"


def table(items: Iterable[TaskItem]) -> Iterator[str]:
    yield f"{'task':<40} {'set':<10} {'category':<14} {'compute':>8} {'cell':>7} {'tokens':>9}"
    for item in items:
        task = item.task
        limits = f"{task.limits.compute:>7g}s {task.limits.cell:>6g}s {budget_for(task).token_limit:>9,}"
        yield f"{item.name:<40} {task.set:<10} {task.category or '-':<14} {limits}"
