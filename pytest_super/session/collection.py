"""Task files as pytest modules and tasks as pytest functions.

The arguments of `run_task` are the fixtures of the item, so that a conftest overrides them as those of
any test.
"""

from __future__ import annotations

import types
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import SuperError, TaskFileError
from pytest_super.report.junit import static_properties
from pytest_super.report.text import printable
from pytest_super.session.outcome import RESULT, Unsolved
from pytest_super.session.run import RUN
from pytest_super.store.results import TrialFolder, TrialResult, epoch_name
from pytest_super.tasks.loading import load_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.kernel.client import Kernel
    from pytest_super.model.completion import Model
    from pytest_super.session.settings import Settings
    from pytest_super.tasks.task import Task
    from pytest_super.trial.budget import Budget
    from pytest_super.trial.trial import Agent

# Beyond limits.wall: time for the cell to be stopped, the trial scored and the sandbox removed.
WALL_GRACE = 120.0

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


@cache
def mark(name: str, value: str) -> pytest.MarkDecorator:
    """One for all tasks that have it: there are thousands of tasks, and few sets and categories."""
    decorator: pytest.MarkDecorator = getattr(pytest.mark, name)(name=value)
    return decorator


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


class TaskItem(pytest.Function):
    """One trial to be run: a task in one epoch."""

    def __init__(self, *, task: Task, epoch: int, **arguments: Any) -> None:
        self.task = task
        self.epoch = epoch
        super().__init__(**arguments)
        self.add_marker(mark("super_set", task.set))
        self.extra_keyword_matches.add(task.set)
        if task.category:
            self.add_marker(mark("super_category", task.category))
            self.extra_keyword_matches.add(task.category)
        if task.limits.wall is not None:
            self.add_marker(pytest.mark.timeout(task.limits.wall + WALL_GRACE, method="signal"))
        self._folder: TrialFolder | None = None

    @property
    def folder(self) -> TrialFolder:
        """The trial's folder on disk, made when it is first asked for. Raises InfrastructureError."""
        if self._folder is None:
            self._folder = TrialFolder(self.config.stash[RUN].path, self.start_result())
        return self._folder

    def open_folder(self) -> None:
        """Make the trial known on disk, before anything is done that could end this process."""
        assert self.folder

    def discard_folder(self) -> None:
        """Forget a trial that was skipped after all."""
        if self._folder is not None:
            self._folder.discard()
            self._folder = None

    def known_result(self) -> TrialResult:
        """As of the start of the trial: of its folder, where it has one."""
        return self.start_result() if self._folder is None else self._folder.start

    def start_result(self) -> TrialResult:
        run = self.config.stash[RUN]
        return TrialResult(
            id=self.task.id,
            set=self.task.set,
            category=self.task.category,
            epoch=self.epoch,
            attempt=1,
            agent=run.settings.agent,
            model=run.settings.model,
            sandbox=run.sandbox,
            has_answer="answer" in self.task.model_fields_set,
        )

    def setup(self) -> None:
        """A plugin may run an item again: that is another attempt, with a folder and a result of its own."""
        self._folder = None
        if RESULT in self.stash:
            del self.stash[RESULT]
        others = [(name, value) for name, value in self.user_properties if not name.startswith("super.")]
        self.user_properties[:] = [*static_properties(self.start_result()), *others]
        super().setup()

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, self.task._line - 1, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A short text for what is no fault in anybody's code; a traceback for what is."""
        if isinstance(excinfo.value, (Unsolved, SuperError)):
            return printable(str(excinfo.value))
        return super().repr_failure(excinfo) if style is None else excinfo.getrepr(style=style)


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
