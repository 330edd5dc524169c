"""The kernel of the next trial, started while this one runs.

A trial mostly waits, for its model above all, and a sandbox needs a second or more of a processor to start.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.sandbox import Sandbox
    from pytest_super.session.item import TaskItem
    from pytest_super.snapshots.prefix import Prefix
    from pytest_super.tasks.task import Task

# How long the end of a session waits for a kernel that is being started; the sandbox of one that needs longer
# ends with this process.
END_SECONDS = 4.0

# No exceptions to Python, and raised by hooks all the same.
OUTCOMES = (pytest.skip.Exception, pytest.fail.Exception, pytest.exit.Exception)

PREFETCH = pytest.StashKey["Prefetch"]()


class Place(NamedTuple):
    """Where a trial will be."""

    sandbox: Sandbox
    prefix: Prefix


class ReadyKernel(NamedTuple):
    """A kernel that runs cells, in a sandbox that has all that its task wants."""

    kernel: Kernel
    repository: str | None
    """Name of the folder into which it was put."""
    prefix: Prefix

    def close(self) -> None:
        self.kernel.close()
        self.prefix.close()


class Prefetch:
    """At most one kernel beside that of the trial that runs. Used by one thread.

    What fails here is kept quiet: the trial that it was for tries it again, and tells.
    """

    def __init__(
        self,
        choose: Callable[[TaskItem, Task], Place],
        start: Callable[[Place, Task], ReadyKernel],
    ) -> None:
        """`choose` is called by the caller's thread, `start` by one of ours."""
        self.next: TaskItem | None = None
        """The item after the one that runs."""
        self._choose = choose
        self._start = start
        self._item: TaskItem | None = None
        self._future: Future[ReadyKernel] = Future()
        self._is_vain = False

    def begin(self) -> None:
        """Start the kernel of the next item, unless that was begun; one that nobody took is closed."""
        item = self.next
        if item is None or item is self._item or self._is_vain:
            return
        self.drop()
        future: Future[ReadyKernel] = Future()
        try:
            place = self._choose(item, item.task)
            threading.Thread(target=self._work, args=(future, place, item.task), daemon=True).start()
        except (Exception, *OUTCOMES):
            return
        self._item, self._future = item, future

    def _work(self, future: Future[ReadyKernel], place: Place, task: Task) -> None:
        try:
            future.set_result(self._start(place, task))
        except BaseException as error:
            future.set_exception(error)

    def take(self, item: TaskItem, task: Task) -> ReadyKernel | None:
        """The kernel started for this item, once it is ready; None where there is none that lives.

        A project whose fixture makes another task of the item's gets no more of them.
        """
        if self._item is not item:
            return None
        if item.task != task:
            self._is_vain = True
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
        """Close the kernel that nobody took, as soon as it has started."""
        if self._item is not None:
            self._item = None
            self._future.add_done_callback(close_kernel)

    def end(self) -> None:
        """Close it now."""
        if self._item is not None:
            with suppress(TimeoutError):
                self._future.exception(END_SECONDS)
            self.drop()


def close_kernel(future: Future[ReadyKernel]) -> None:
    if future.exception() is None:
        future.result().close()
