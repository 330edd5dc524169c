"""The thread of a container that enforces its disk limit and renews its deadline."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.docker.sweep import LEASE

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

CHECK_SECONDS = 3.0
LONGEST_PAUSE = 30.0
FASTEST_BYTES = 2 * 2**30
"""The most that a container writes in a second. No check is needed before it can be at its limit."""
RENEW_SECONDS = LEASE / 3
"""Early enough to repeat failed renewals before the deadline."""
COST_SHARE = 0.05
"""The most of the time that measuring can take: the engine walks the written files, 0.6 s for 100,000."""


def watch(
    ended: threading.Event,
    limit: int,
    measure: Callable[[], int],
    kill: Callable[[int], None],
    renew: Callable[[], None],
) -> None:
    """Call `measure` (bytes written) every few seconds, `kill` when that is over `limit`, `renew` in time.

    Returns after the kill, or soon after the event. Ignores an engine that does not answer, because the end
    of the stream reports that.
    """
    renewed = time.monotonic()
    left, cost = limit, 0.0
    while not ended.wait(pause(left, cost)):
        began = time.monotonic()
        with contextlib.suppress(InfrastructureError):
            written = measure()
            left = limit - written
            # A trial can have ended during the measurement; then it is not over its limit.
            if left < 0 and not ended.is_set():
                kill(written)
                return
            if began - renewed > RENEW_SECONDS:
                renew()
                renewed = began
        cost = time.monotonic() - began


def pause(left: int, cost: float) -> float:
    """Seconds until the next check, with `left` bytes up to the limit, after a check that took `cost`."""
    return max(CHECK_SECONDS, min(left / FASTEST_BYTES, LONGEST_PAUSE), cost / COST_SHARE)
