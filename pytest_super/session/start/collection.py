"""Task files as pytest modules, tasks and the items of papers (set functions) as pytest functions.

The arguments of `run_task` are fixtures, so a conftest can override them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import SuperError, TaskFileError
from pytest_super.model.completion import Model
from pytest_super.session.private_pytest import fixture_closure
from pytest_super.session.run import RUN
from pytest_super.session.trial.item import TaskItem
from pytest_super.session.trial.scoring import refuse_late_metrics
from pytest_super.store.results import epoch_name
from pytest_super.tasks.combinations import Items, Places, all_places, item_id, places_in, sampled_places
from pytest_super.tasks.loading import load_tasks, refuse_known_ids
from pytest_super.tasks.task import TASK_SUFFIX, Task
from pytest_super.trial.budget import Budget
from pytest_super.words import printable

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.trial.agent_run import Agent

# Between a file and the name of an item in the arguments of pytest.
SEPARATOR = "::"
TASK_PLACES = pytest.StashKey[dict[str, str]]()
STATED: pytest.StashKey[list[Task]] = pytest.StashKey()
"""The tasks of the collected files; papers are whole, also those without an item."""
FIXTURE_CLOSURES = pytest.StashKey[dict[pytest.Collector | None, Any]]()


def run_task(
    request: pytest.FixtureRequest,
    super_task: Task,
    super_agent: Agent,
    super_budget: Budget,
    super_model: Model | None,
    super_kernel: Kernel,
    super_make_kernel: Callable[[], Kernel],
) -> None:
    """The body of a task item. The agent comes first, because it can skip the task.

    The model comes before the kernel, so that its gateway starts while the sandbox does.
    """
    from pytest_super.session.trial.ended_trial import run_trial

    run_trial(
        request.node, super_task, super_agent, super_budget, super_model, super_kernel, super_make_kernel
    )


class TaskFile(pytest.Module):
    """A `*.task.yaml` file."""

    def _getobj(self) -> types.ModuleType:
        # Pytest would import the file as Python code.
        return types.ModuleType(self.path.stem)

    def collect(self) -> Iterator[TaskItem]:
        try:
            refuse_late_metrics(self.config)
            stated = load_tasks(self.path, shown=self.nodeid)
            self.config.stash.setdefault(STATED, []).extend(stated)
            tasks = [item for task in stated for item in items_of(task, self.config, self.path)]
            refuse_known_ids(tasks, self.session.stash.setdefault(TASK_PLACES, {}), self.nodeid)
        except SuperError as error:
            raise self.CollectError(printable(str(error))) from None
        for epoch in range(1, self.config.stash[RUN].settings.epochs.most + 1):
            for task in tasks:
                yield self.make_item(task, epoch)

    def make_item(self, task: Task, epoch: int) -> TaskItem:
        """Make an item that shares the fixture closure of the first item of its folder: it is expensive."""
        closures = self.session.stash.setdefault(FIXTURE_CLOSURES, {})
        item = TaskItem.from_parent(
            self,
            name=epoch_name(task.id, epoch),
            callobj=run_task,
            fixtureinfo=closures.get(self.parent),
            task=task,
            epoch=epoch,
        )
        closures[self.parent] = fixture_closure(item)
        return item


def items_of(task: Task, config: pytest.Config, file: Path) -> Iterable[Task]:
    """The task itself, or the items of a paper. Raises SuperError for too many."""
    if not task.functions:
        return [task]
    items = Items(task)
    named = [places for name in names_in(config, file, task) for places in [places_in(task, name)]]
    return map(items.item, dict.fromkeys([*asked_places(task, config), *named]))


def asked_places(paper: Task, config: pytest.Config) -> Iterator[Places]:
    """The combinations that the options and the file ask for. Raises SuperError for too many."""
    settings = config.stash[RUN].settings
    for n in settings.sizes or paper.n:
        if settings.sample is None:
            yield from all_places(paper, n)
        elif n <= len(paper.functions):
            yield from sampled_places(paper, n, settings.sample.size, settings.sample.seed)


def names_in(config: pytest.Config, file: Path, paper: Task) -> Iterator[str]:
    """The names of a paper's items in the arguments of pytest, without their epochs."""
    for argument in config.args:
        path, separator, name = argument.partition(SEPARATOR)
        name = name.partition("[")[0]
        if separator and name.startswith(f"{paper.id}_") and config.invocation_params.dir / path == file:
            yield name


def name_items_in_order(config: pytest.Config) -> None:
    """Let arguments such as `file::paper_1,0` name the item `paper_0,1`. Raises pytest.UsageError."""
    config.args[:] = map(in_order, config.args)


def in_order(argument: str) -> str:
    path, separator, name = argument.partition(SEPARATOR)
    if not separator or not path.endswith(TASK_SUFFIX) or "_" not in name:
        return argument
    plain, bracket, epoch = name.partition("[")
    try:
        for task in load_tasks(Path(path)):
            if task.functions and plain.startswith(f"{task.id}_"):
                return f"{path}{SEPARATOR}{item_id(task, places_in(task, plain))}{bracket}{epoch}"
    except TaskFileError:
        # Its collection reports that.
        return argument
    except SuperError as error:
        raise pytest.UsageError(printable(str(error))) from None
    return argument
