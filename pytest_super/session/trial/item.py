"""The item of a task: one trial that pytest runs, and the data that its phases pass to each other."""

from __future__ import annotations

import shutil
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_super.errors import SuperError
from pytest_super.redaction import redacted
from pytest_super.report.failure_line import failure_line
from pytest_super.session.comparability import facts_of_scoring
from pytest_super.session.run import RUN, worker_name
from pytest_super.session.trial.scoring import SCORING
from pytest_super.snapshots.prefix import Prefix
from pytest_super.store.results import TrialResult
from pytest_super.store.trial_folder import TrialFolder
from pytest_super.tasks.task import Task
from pytest_super.words import counted, printable

if TYPE_CHECKING:
    from pytest_super.grading.masked_code import PaperCode
    from pytest_super.kernel.client import Kernel

RESULT = pytest.StashKey[TrialResult]()
# The result of an earlier run that stands for the trial, which then does not run.
STORED = pytest.StashKey[TrialResult]()


class ReadyKernel(NamedTuple):
    """A kernel that runs cells, in a sandbox with everything that the task requires."""

    kernel: Kernel
    repository: str | None
    """The name of the repository's folder inside the working directory."""
    prefix: Prefix
    facts: dict[str, Any]
    """Fields of the result that describe the sandbox."""
    code: PaperCode | None = None
    """Of an item of a paper."""

    def close(self) -> None:
        self.kernel.close()
        self.prefix.close()


class Unsolved(AssertionError):
    """The agent did not solve the task. The text says how far it came.

    Reports of other tools distinguish a test that fails from one that is broken by this base class.
    """

    # Pytest does the same with its own exceptions, so that the short summary shows no module name.
    __module__ = "builtins"


@cache
def mark(name: str, value: str) -> pytest.MarkDecorator:
    """A marker, made once for all tasks: there are thousands of tasks, but few sets and categories."""
    decorator: pytest.MarkDecorator = getattr(pytest.mark, name)(name=value)
    return decorator


class TaskItem(pytest.Function):
    """One trial: a task in one epoch."""

    def __init__(self, *, task: Task, epoch: int, **arguments: Any) -> None:
        self.task = task
        self.epoch = epoch
        super().__init__(**arguments)
        self.add_marker(mark("super_set", task.set))
        self.extra_keyword_matches.add(task.set)
        if task.category:
            self.add_marker(mark("super_category", task.category))
            self.extra_keyword_matches.add(task.category)
        self.ready: ReadyKernel | None = None
        """None as long as the trial has no kernel of ours, as in a project with a fixture of its own."""
        self._folder: TrialFolder | None = None

    @property
    def provided(self) -> str | None:
        return self.ready.repository if self.ready else None

    @property
    def paper_code(self) -> PaperCode | None:
        return self.ready.code if self.ready else None

    def open_folder(self) -> TrialFolder:
        """The trial's folder on disk, made by the first call. Raises InfrastructureError."""
        if self._folder is None:
            self._folder = TrialFolder(self.config.stash[RUN].path, self.start_result())
        return self._folder

    def discard_folder(self) -> None:
        """Remove the folder of a trial that is skipped, also one that was taken over."""
        if STORED in self.stash:
            shutil.rmtree(self.config.stash[RUN].path / self.stash[STORED].folder, ignore_errors=True)
        if self._folder is not None:
            self._folder.discard()
            self._folder = None

    def known_result(self) -> TrialResult:
        """The result as it was at the start of the trial."""
        return self.start_result() if self._folder is None else self._folder.start

    def start_result(self) -> TrialResult:
        run = self.config.stash[RUN]
        metrics = self.config.stash[SCORING].metrics
        return TrialResult(
            id=self.task.id,
            set=self.task.set,
            category=self.task.category,
            epoch=self.epoch,
            rerun=0,
            agent=run.settings.agent,
            model=run.settings.model,
            forked_from=run.settings.forked_from,
            sandbox=run.sandbox or "",
            metrics={metric.name: None for metric in metrics},
            repository=redacted(self.task.repository.name) if self.task.repository else "",
            worker=worker_name(self.config),
            **facts_of_scoring(self.task, metrics, run.settings.scoring),
        )

    def setup(self) -> None:
        """Set up a run of the item. A plugin can run it again; each rerun has its own folder and result."""
        self._folder = None
        last = self.config.stash[RUN].last_epoch
        if self.epoch > last:
            pytest.skip(f"not needed: the gates were decided after {counted(last, 'epoch')}")
        if STORED in self.stash:
            self.stash[RESULT] = self.stash[STORED]
            return
        if RESULT in self.stash:
            del self.stash[RESULT]
        # Before the fixtures: when the worker dies in one, the folder says which trial has no result.
        self.open_folder()
        super().setup()

    def runtest(self) -> None:
        if STORED not in self.stash:
            super().runtest()
        elif not self.stash[STORED].solved:
            raise Unsolved(failure_line(self.stash[STORED]))

    def teardown(self) -> None:
        super().teardown()
        # Pytest keeps the items until the session ends, and their code can be large.
        self.ready = None

    def reportinfo(self) -> tuple[Any, int | None, str]:
        # Pytest counts these lines from 0.
        return self.path, self.task._line - 1, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message alone of our own exceptions, which are not faults of code; else a traceback."""
        if isinstance(excinfo.value, (Unsolved, SuperError)):
            return printable(str(excinfo.value))
        # Pytest's method for functions accepts no style.
        return super().repr_failure(excinfo) if style is None else excinfo.getrepr(style=style)
