"""Starts the kernel of the next trial while this one runs.

A trial mostly waits for its model, and a sandbox takes a second or more of processor time to start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_super.kernel.sandbox import Sandbox

if TYPE_CHECKING:
    from pytest_super.grading.masked_code import PaperCode
    from pytest_super.session.trial.item import ReadyKernel, TaskItem
    from pytest_super.snapshots.prefix import Prefix
    from pytest_super.tasks.task import Task

# How long the end of a session waits for a starting kernel. One that takes longer ends with the process.
END_SECONDS = 4.0

# Hooks can raise these. They do not derive from Exception.
OUTCOMES = (pytest.skip.Exception, pytest.fail.Exception, pytest.exit.Exception)

START_AHEAD = pytest.StashKey["StartAhead"]()


class Placement(NamedTuple):
    """The sandbox of a trial, not open yet, and how its prefix is run there."""

    sandbox: Sandbox
    prefix: Prefix
    code: PaperCode | None
    """Of an item of a paper."""
    with_kernel: bool = True
    """Whether the trial begins with cells. Without, the first cell starts the kernel."""


class StartAhead:
    """Has at most one kernel besides that of the running trial. Used by one thread.

    Failures here are silent: the trial that the kernel is for tries again and reports them.
    """

    def __init__(
        self, choose: Callable[[TaskItem, Task], Placement], start: Callable[[Placement, Task], ReadyKernel]
    ) -> None:
        """`choose` is called in the caller's thread, `start` in a new one."""
        self.next: TaskItem | None = None
        """The item after the running one."""
        self._choose = choose
        self._start = start
        self._item: TaskItem | None = None
        self._future: Future[ReadyKernel] = Future()
        self._is_useless = False

    def begin(self) -> None:
        """Start the kernel of the next item, unless it is started. Close a kernel that no trial took."""
        item = self.next
        if item is None or item is self._item or self._is_useless:
            return
        self.drop()
        future: Future[ReadyKernel] = Future()
        try:
            place = self._choose(item, item.task)
            # Not an executor: the interpreter waits for the threads of executors before it ends.
            threading.Thread(target=self._work, args=(future, place, item.task), daemon=True).start()
        except (Exception, *OUTCOMES):
            return
        # Only now: `take` would wait for ever for a thread that could not be started.
        self._item, self._future = item, future

    def _work(self, future: Future[ReadyKernel], place: Placement, task: Task) -> None:
        try:
            future.set_result(self._start(place, task))
        # Whatever it is, since `take` waits for a result.
        except BaseException as error:
            future.set_exception(error)

    def take(self, item: TaskItem, task: Task) -> ReadyKernel | None:
        """The kernel started for this item, once it is ready; None if there is none or it has died.

        If a fixture of the project has replaced the item's task, no further kernel is started ahead.
        """
        if self._item is not item:
            return None
        if item.task != task:
            self._is_useless = True
            self.drop()
            return None
        failure = self._future.exception()
        self._item = None
        if failure is not None:
            return None
        ready = self._future.result()
        if ready.kernel.is_alive:
            return ready
        ready.close()
        return None

    def drop(self) -> None:
        """Close a kernel that no trial took, once it has started."""
        if self._item is not None:
            self._item = None
            self._future.add_done_callback(close_kernel)

    def end(self) -> None:
        """Wait a short time for a kernel that is starting, and close it."""
        if self._item is not None:
            with suppress(TimeoutError):
                self._future.exception(END_SECONDS)
            self.drop()


def close_kernel(future: Future[ReadyKernel]) -> None:
    if future.exception() is None:
        future.result().close()
