"""A session with an agent: what it collects, in which order, and what its trials' reports carry."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.registry import NEED_MODEL, find_agent
from pytest_super.errors import SuperError
from pytest_super.options import ini_value
from pytest_super.session import fixtures
from pytest_super.session.collection import TaskFile, deselect, pair_long_with_short
from pytest_super.session.item import TaskItem
from pytest_super.session.kernels import choose_next_place, make_sandbox, ready_kernel
from pytest_super.session.listing import collected_lines, selection_hints
from pytest_super.session.outcome import judge, status
from pytest_super.session.run import HINTS, RUN, is_worker, open_run
from pytest_super.session.settings import read_settings
from pytest_super.session.signals import Interrupts, die_with_parent
from pytest_super.session.start_ahead import PREFETCH, Prefetch
from pytest_super.tasks.task import TASK_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pytest_super.kernel.sandbox import Sandbox
    from pytest_super.session.settings import Settings
    from pytest_super.tasks.task import Task
    from pytest_super.trial.trial import Agent

# xdist's scope schedulers hang or lose items when a worker dies, and worksteal spoils the order.
DIST_MODES = ("no", "load")


def activate(config: pytest.Config) -> None:
    """Make this session a run; check first all that can be checked before money is spent.

    Raises pytest.UsageError.
    """
    settings = read_settings(config)
    if not is_worker(config):
        refuse_dist_modes(config)
        refuse_unknown_agent(config, settings.agent)
        refuse_missing_options(settings)
    collect_tasks_by_default(config)
    run = open_run(config, settings)
    config.stash[RUN] = run
    config.stash[PREFETCH] = Prefetch(choose_next_place, ready_kernel)
    config.pluginmanager.register(fixtures, "super-fixtures")
    config.pluginmanager.register(Session(), "super-session")
    config.pluginmanager.register(Interrupts(), "super-interrupts")
    if is_worker(config):
        die_with_parent()
        # What is loaded by now stays: pytest looks through it all at its end, twice, for garbage.
        gc.freeze()
    elif not config.option.collectonly:
        from pytest_super.session.controller import Recorder

        config.pluginmanager.register(Recorder(config, run), "super-recorder")


def refuse_dist_modes(config: pytest.Config) -> None:
    mode = config.getoption("dist", "no")
    if mode not in DIST_MODES:
        raise pytest.UsageError(f"tasks run under --dist=load (what -n means by itself), not --dist={mode}")
    # The order of the items counts only when they are handed out one by one.
    if getattr(config.option, "maxschedchunk", 1) is None:
        config.option.maxschedchunk = 1


def refuse_unknown_agent(config: pytest.Config, name: str) -> None:
    """A conftest or plugin may make agents by names that are its own."""
    own = ("super_agent", "pytest_super_make_agent")
    if any(hasattr(plugin, attribute) for plugin in config.pluginmanager.get_plugins() for attribute in own):
        return
    try:
        find_agent(name)
    except SuperError as error:
        raise pytest.UsageError(str(error)) from None


def refuse_missing_options(settings: Settings) -> None:
    """An agent that ships is told of what it needs before a sandbox is started for it."""
    if settings.agent in NEED_MODEL and settings.model is None:
        raise pytest.UsageError(
            f"--super-agent={settings.agent} needs --super-model, for example --super-model=openai/gpt-4o"
        )
    if settings.attempts > 1 and settings.model is None:
        raise pytest.UsageError(
            "--super-attempts needs --super-model, to reflect on the attempts that failed"
        )
    if settings.agent == "replay" and settings.for_agent.trajectory is None:
        raise pytest.UsageError("--super-agent=replay needs --super-trajectory, the run or file to replay")


def collect_tasks_by_default(config: pytest.Config) -> None:
    """With an agent and no path, the ini value super_tasks says what is collected."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    paths = [config.rootpath / path for path in ini_value(config, "super_tasks")]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise pytest.UsageError(
            f"there is no {', '.join(missing)} to collect tasks from: "
            "name a path, set super_tasks, or make starter tasks with `pytest-super init`"
        )
    config.args = [str(path) for path in paths]


class Session:
    """The hooks of a run, in every process that collects."""

    def __init__(self) -> None:
        self.hints: list[str] = []

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> TaskFile | None:
        if file_path.name.endswith(TASK_SUFFIX):
            return TaskFile.from_parent(parent, path=file_path)
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None]:
        """Around those of -k and -m, to know what there was before them, and to order what they leave."""
        tasks = [item.task for item in items if isinstance(item, TaskItem)]
        yield
        deselect(items, config)
        self.hints = selection_hints(config.stash[RUN].settings, tasks, bool(items))
        if is_worker(config):
            config.workeroutput[HINTS] = self.hints  # type: ignore[attr-defined]
            pair_long_with_short(items, config.stash[RUN].expected_seconds)

    def pytest_report_collectionfinish(self, config: pytest.Config, items: list[pytest.Item]) -> list[str]:
        tasks = [item for item in items if isinstance(item, TaskItem)]
        return [*self.hints, *collected_lines(config, tasks)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Without xdist pytest runs nothing when a file is broken; a worker would, and spend money."""
        config = session.config
        if is_worker(config) and session.testsfailed and not config.option.continue_on_collection_errors:
            session.shouldfail = f"{session.testsfailed} errors during collection"
            return True
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        item.config.stash[PREFETCH].next = nextitem if isinstance(nextitem, TaskItem) else None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """After the teardown of the trial that ran, which is not to wait for the start of another."""
        session.config.stash[PREFETCH].end()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if isinstance(item, TaskItem):
            judge(item, call, report)
        return report

    def pytest_report_teststatus(self, report: Any) -> Any:
        return status(report)

    @pytest.hookimpl(trylast=True)
    def pytest_super_make_agent(
        self, config: pytest.Config, name: str, task: Task, epoch: int
    ) -> Agent | None:
        return find_agent(name)(task, replace(config.stash[RUN].settings.for_agent, epoch=epoch))

    @pytest.hookimpl(trylast=True)
    def pytest_super_make_sandbox(self, config: pytest.Config, task: Task) -> Sandbox:
        return make_sandbox(config.stash[RUN], task)
