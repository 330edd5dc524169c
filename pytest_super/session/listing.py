"""Reports a collection: the list of --collect-only, and hints when options select unexpected tasks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_super.report.text import counted, printable
from pytest_super.trial.budget import budget_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    import pytest

    from pytest_super.session.item import TaskItem
    from pytest_super.session.settings import Settings
    from pytest_super.tasks.task import Task


def collected_lines(config: pytest.Config, items: list[TaskItem]) -> list[str]:
    lines = list(keyword_hints(config.option.keyword, [item.task.category for item in items]))
    if config.option.collectonly and config.option.verbose >= 0:
        lines += table(items)
    return lines


def selection_hints(settings: Settings, tasks: Iterable[Task], is_any_left: bool) -> list[str]:
    """Hints when no task has a category or set that an option names, or when no item is left at all.

    `tasks` are those of all collected items, one for each epoch.
    """
    by_id = {task.id: task for task in tasks}
    categories = {task.category for task in by_id.values() if task.category}
    sets = {str(task.set) for task in by_id.values()}
    hints = [
        f"--super-category={name} selects no task: the categories here are {listed(categories)}"
        for name in settings.categories
        if name not in categories
    ]
    hints += [
        f"--super-set={name} selects no task: the sets here are {listed(sets)}"
        for name in settings.sets
        if name not in sets
    ]
    if by_id and not is_any_left and not hints:
        there = f"their sets are {listed(sets)}; their categories are {listed(categories)}"
        hints.append(f"none of the {counted(len(by_id), 'task')} here is selected: {there}")
    return [printable(hint) for hint in hints]


def listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def keyword_hints(expression: str, selected: Sequence[str | None]) -> Iterator[str]:
    """Hints when a word of -k is a category but also selects other tasks, because -k matches parts of words.

    `selected` has the category of each selected task.
    """
    for word in sorted(set(re.findall(r"[\w-]+", expression)) & set(filter(None, selected))):
        others = sum(category != word for category in selected)
        if others:
            exact = f"--super-category={word} is exact"
            yield f"-k {word} also selects {counted(others, 'task')} outside the category: {exact}"


def table(items: Iterable[TaskItem]) -> Iterator[str]:
    yield f"{'task':<40} {'set':<10} {'category':<14} {'compute':>8} {'cell':>7} {'tokens':>9}"
    for item in items:
        task = item.task
        limits = f"{task.limits.compute:>7g}s {task.limits.cell:>6g}s {budget_for(task).token_limit:>9,}"
        yield f"{item.name:<40} {task.set:<10} {task.category or '-':<14} {limits}"
