"""The pytest hooks of a run that collect, select and order its tasks, and make agents and sandboxes."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.registry import find_agent
from pytest_super.errors import SuperError
from pytest_super.gate import Selected
from pytest_super.kernel.sandbox import Sandbox
from pytest_super.session.run import HINTS, RUN, is_worker
from pytest_super.session.start.collection import STATED, TaskFile
from pytest_super.session.start.comparable import note_comparable, refuse_few, selected_of
from pytest_super.session.start.gated_figures import refuse_missing_figures
from pytest_super.session.start.refusals import refuse_marks
from pytest_super.session.start.resume import RESUMED_RUN
from pytest_super.session.start.sandbox_check import (
    refuse_missing_packages,
    refuse_shared_gpus,
    refuse_to_run,
    refuse_unfit_machine,
)
from pytest_super.session.start.selection import (
    collected_lines,
    deselect,
    keep_epochs,
    order_for_workers,
    selection_hints,
)
from pytest_super.session.trial.item import STORED, TaskItem
from pytest_super.session.trial.scoring import GATES
from pytest_super.session.trial.start_ahead import START_AHEAD
from pytest_super.sources.tree import Tree
from pytest_super.tasks.task import TASK_SUFFIX, Task
from pytest_super.words import printable

if TYPE_CHECKING:
    from pytest_super.trial.agent_run import Agent

MISNAMED = "{path}: a task file is named NAME.task.yaml: rename it if it is one"


def selected(items: Iterable[pytest.Item], config: pytest.Config) -> Selected:
    """Choose the tasks; all must run without a run or a baseline. Raises SuperError."""
    tasks, run = [item for item in items if isinstance(item, TaskItem)], config.stash[RUN]
    if not tasks or run.settings.baseline is None or config.option.collectonly:
        ids = {item.task.id for item in tasks}
        return Selected(ids=ids, must_run=ids)
    note_comparable(tasks, run)
    return selected_of(run.path)


class Session:
    """The hooks of a run, in every process that collects."""

    def __init__(self) -> None:
        self.hints: list[str] = []
        self.misnamed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> Generator[None, Any, Any]:
        found = yield
        if file_path.name.endswith(TASK_SUFFIX):
            # Pytest's own id of a file outside of the rootdir can be empty, and then the reports of its items
            # would not be known as those of tasks.
            id = None if file_path.is_relative_to(parent.config.rootpath) else file_path.as_posix()
            found.append(TaskFile.from_parent(parent, path=file_path, nodeid=id))
        # Other plugins can collect such files.
        elif file_path.suffix in (".yaml", ".yml") and not found:
            if parent.session.isinitpath(file_path):
                raise parent.CollectError(MISNAMED.format(path=file_path))
            if b"\nquery:" in b"\n" + Tree(file_path.parent).read(file_path.name):
                self.misnamed.append(printable(MISNAMED.format(path=file_path)))
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Adds task files that are not regular, which pytest passes over: to read them says what they are."""
        report = yield
        if isinstance(collector, pytest.Directory) and report.passed:
            for path in collector.path.glob(f"*{TASK_SUFFIX}"):
                if not path.is_file():
                    report.result += collector.ihook.pytest_collect_file(file_path=path, parent=collector)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None]:
        """Wraps the selection by -k and -m: the hints need all items, the order those that are left."""
        tasks = [item.task for item in items if isinstance(item, TaskItem)]
        yield
        deselect(items, config, tasks)
        refuse_missing_packages(config, items)
        stated = config.stash.get(STATED, [])
        run = config.stash[RUN]
        self.hints = selection_hints(run.settings, stated, tasks, items) + ([] if stated else self.misnamed)
        if is_worker(config):
            refuse_unfit_machine(config, items)
            config.workeroutput[HINTS] = self.hints  # type: ignore[attr-defined]
            # Only for xdist, whose workers always have the next item in advance.
            workers = config.workerinput["workercount"]  # type: ignore[attr-defined]
            refuse_shared_gpus(config, items, workers)
            order_for_workers(items, run.expected_seconds, workers)
        if run.settings.epochs.is_adaptive:
            try:
                keep_epochs(items, config.stash[GATES].plan(selected(items, config)), config)
            except SuperError as error:
                refuse_to_run(config, items, str(error))

    # First, because xdist's reports to the controller that the worker has collected.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Raises pytest.UsageError, like the end of the session."""
        config, items = session.config, [item for item in session.items if isinstance(item, TaskItem)]
        is_broken = session.testsfailed and not config.option.continue_on_collection_errors
        if not items or is_broken or config.option.collectonly:
            return
        try:
            refuse_marks(items)
            refuse_missing_figures(config, items)
            if RESUMED_RUN in config.stash:
                config.stash[RESUMED_RUN].take_over(items)
            if config.stash[RUN].settings.baseline is not None:
                note_comparable(items, config.stash[RUN])
                refuse_few(config.stash[RUN])
        except (pytest.UsageError, SuperError) as error:
            refuse_to_run(config, session.items, str(error))

    def pytest_report_collectionfinish(self, config: pytest.Config, items: list[pytest.Item]) -> list[str]:
        tasks = [item for item in items if isinstance(item, TaskItem)]
        return [*self.hints, *collected_lines(config, tasks)]

    # First, because the hook ends with the plugin that runs the tests, here xdist's.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run nothing in a worker if a file is broken, as pytest does without xdist: it would spend money."""
        config = session.config
        if is_worker(config) and session.testsfailed and not config.option.continue_on_collection_errors:
            session.shouldfail = f"{session.testsfailed} errors during collection"
            return True
        return None

    # First, because the hook ends with the plugin that runs the item.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        following = nextitem if isinstance(nextitem, TaskItem) else None
        if RESUMED_RUN in item.config.stash:
            for one in (item, following):
                if isinstance(one, TaskItem):
                    item.config.stash[RESUMED_RUN].prepare(one)
        last = item.config.stash[RUN].last_epoch
        is_run = following is not None and STORED not in following.stash and following.epoch <= last
        item.config.stash[START_AHEAD].next = following if is_run else None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Runs after the teardown of the last trial, which must not wait for the start of another one."""
        if START_AHEAD in session.config.stash:
            session.config.stash[START_AHEAD].end()

    # Last, or a conftest that was registered before us would not be asked.
    @pytest.hookimpl(trylast=True)
    def pytest_super_make_agent(
        self, config: pytest.Config, name: str, task: Task, epoch: int
    ) -> Agent | None:
        return find_agent(name)(task, replace(config.stash[RUN].settings.for_agent, epoch=epoch))

    @pytest.hookimpl(trylast=True)
    def pytest_super_make_sandbox(self, config: pytest.Config, task: Task) -> Sandbox:
        # Not at the top, for sessions that only collect.
        from pytest_super.session.trial.kernels import make_sandbox

        return make_sandbox(config.stash[RUN], task)
