"""Task files as pytest modules and tasks as pytest functions.

The arguments of `run_task` are the fixtures of the item, so that a conftest overrides them as those of
any test.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import TaskFileError
from pytest_super.session.item import TaskItem
from pytest_super.session.run import RUN
from pytest_super.store.results import epoch_name
from pytest_super.tasks.loading import load_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.kernel.client import Kernel
    from pytest_super.model.completion import Model
    from pytest_super.session.settings import Settings
    from pytest_super.tasks.task import Task
    from pytest_super.trial.budget import Budget
    from pytest_super.trial.trial import Agent

TASK_PLACES = pytest.StashKey[dict[str, str]]()
FIXTURES = pytest.StashKey[dict[pytest.Collector | None, Any]]()


def run_task(
    request: pytest.FixtureRequest,
    super_task: Task,
    super_agent: Agent,
    super_budget: Budget,
    super_model: Model | None,
    super_kernel: Kernel,
) -> None:
    """The body of a task item; its arguments are the fixtures that a conftest may override.

    The model comes before the kernel, so that its gateway starts while the sandbox does.
    """
    from pytest_super.session.runner import conduct

    def make_kernel() -> Kernel:
        kernel: Kernel = request.getfixturevalue("super_make_kernel")()
        return kernel

    conduct(request.node, super_task, super_agent, super_budget, super_model, super_kernel, make_kernel)


class TaskFile(pytest.Module):
    """A `*.task.yaml` file."""

    def _getobj(self) -> types.ModuleType:
        return types.ModuleType(self.path.stem)

    def collect(self) -> Iterator[TaskItem]:
        try:
            tasks = load_tasks(self.path, shown=self.nodeid)
            refuse_known_ids(tasks, self.session.stash.setdefault(TASK_PLACES, {}), self.nodeid)
        except TaskFileError as error:
            raise self.CollectError(str(error)) from None
        for epoch in range(1, self.config.stash[RUN].settings.epochs + 1):
            for task in tasks:
                name = epoch_name(task.id, epoch)
                yield self.make_item(name, task, epoch)

    def make_item(self, name: str, task: Task, epoch: int) -> TaskItem:
        """All items of a folder see the same fixtures, whose closure is dear to work out for each.

        pytest shares it likewise among the items of a parametrized test; where it is called otherwise
        than now, each item works it out again.
        """
        known = self.session.stash.setdefault(FIXTURES, {})
        item = TaskItem.from_parent(
            self,
            name=name,
            callobj=run_task,
            fixtureinfo=known.get(self.parent),
            task=task,
            epoch=epoch,
        )
        known[self.parent] = getattr(item, "_fixtureinfo", None)
        return item


def refuse_known_ids(tasks: list[Task], places: dict[str, str], file: str) -> None:
    """Results are kept by task id, so an id is unique in a run. Raises TaskFileError."""
    errors = []
    for task in tasks:
        place = f"{file}:{task._line}"
        known = places.setdefault(task.id, place)
        if known != place:
            errors.append(f"{place}:1: the id `{task.id}` stands already at {known}")
    if errors:
        raise TaskFileError("\n".join(errors))


def deselect(items: list[pytest.Item], config: pytest.Config) -> None:
    """Keep the tasks that --super-set and --super-category ask for, and all that is no task."""
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
    """Order the tasks long, short, long, short among the places they hold.

    An xdist worker always holds the next item while it runs one, so that two long ones in a row make
    a worker the last to end (measured: the longest first is worse than a random order).
    """
    places = [index for index, item in enumerate(items) if isinstance(item, TaskItem)]
    tasks = [item for item in items if isinstance(item, TaskItem)]

    def seconds(item: TaskItem) -> float:
        return expected.get(item.task.id, item.task.limits.compute)

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
