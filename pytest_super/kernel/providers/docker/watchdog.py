"""The thread of a container that enforces its disk limit and renews its deadline."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker.sweep import LEASE

if TYPE_CHECKING:
    from collections.abc import Callable

CHECK_SECONDS = 3.0
LONGEST_PAUSE = 30.0
FASTEST_BYTES = 2 * 2**30
"""The most that a container writes in a second. No check is needed before it can be at its limit."""
RENEW_SECONDS = LEASE / 3
"""Early enough to repeat failed renewals before the deadline."""
COST_SHARE = 0.05
"""The most of the time that measuring can take: the engine walks the written files, 0.6 s for 100,000."""


class Watchdog:
    """Calls `measure` (bytes written) every few seconds, `kill` when that is over `limit`, `renew` in time.

    It ignores an engine that does not answer, because the end of the stream reports that.
    """

    def __init__(
        self,
        *,
        limit: int,
        measure: Callable[[], int],
        kill: Callable[[int], None],
        renew: Callable[[], None],
    ) -> None:
        self._limit = self._left = limit
        self._measure = measure
        self._kill = kill
        self._renew = renew
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pytest-super-watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end, without waiting: it can be in a call to an engine that hangs."""
        self._ended.set()

    def _watch(self) -> None:
        renewed = time.monotonic()
        cost = 0.0
        while not self._ended.wait(self._pause(cost)):
            began = time.monotonic()
            with contextlib.suppress(InfrastructureError):
                self._check_disk()
                if began - renewed > RENEW_SECONDS:
                    self._renew()
                    renewed = began
            cost = time.monotonic() - began

    def _pause(self, cost: float) -> float:
        """Seconds until the next check, after one that took `cost`."""
        return max(CHECK_SECONDS, min(self._left / FASTEST_BYTES, LONGEST_PAUSE), cost / COST_SHARE)

    def _check_disk(self) -> None:
        written = self._measure()
        self._left = self._limit - written
        # A trial can have ended during the measurement; then it is not over its limit.
        if written > self._limit and not self._ended.is_set():
            self._ended.set()
            self._kill(written)
