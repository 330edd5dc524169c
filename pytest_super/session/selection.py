"""Selects and orders the collected tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.session.item import TaskItem
from pytest_super.session.run import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from pytest_super.session.settings import Settings
    from pytest_super.tasks.task import Task


def deselect(items: list[pytest.Item], config: pytest.Config) -> None:
    """Keep the tasks that --super-set and --super-category ask for, and all items that are not tasks."""
    settings = config.stash[RUN].settings
    dropped = [item for item in items if isinstance(item, TaskItem) and not is_wanted(item.task, settings)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = set(dropped)
        items[:] = [item for item in items if item not in gone]


def is_wanted(task: Task, settings: Settings) -> bool:
    in_set = not settings.sets or task.set in settings.sets
    in_category = not settings.categories or task.category in settings.categories
    return in_set and in_category


def pair_long_with_short(items: list[pytest.Item], expected: dict[str, float]) -> None:
    """Order the tasks long, short, long, short, and leave other items in their places.

    An xdist worker always has the next item while it runs one, so a worker with two long tasks in a row would
    end last. Measured, longest-first is worse than a random order.
    """
    places = [index for index, item in enumerate(items) if isinstance(item, TaskItem)]
    tasks = [item for item in items if isinstance(item, TaskItem)]

    def seconds(item: TaskItem) -> float:
        return expected.get(item.task.id, item.task.limits.compute)

    # Equal durations by id, because xdist requires the same order from every worker.
    ranked = sorted(tasks, key=lambda item: (-seconds(item), item.nodeid))
    for place, item in zip(places, alternate(ranked), strict=True):
        items[place] = item


def alternate(ranked: list[TaskItem]) -> Iterator[TaskItem]:
    low, high = 0, len(ranked) - 1
    while low <= high:
        yield ranked[low]
        if low < high:
            yield ranked[high]
        low, high = low + 1, high - 1
