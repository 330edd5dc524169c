"""How many model calls run at once, and when all of them pause."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_super.model.protocols.protocol import Event
    from pytest_super.model.provider import Relay

# Seconds that all other calls wait for the answer to the very first.
HEAD_START_SECONDS = 5.0

# Calls at once, in a run on one machine: at its start, and at most.
FIRST, HIGHEST = 32, 256


def loop_time() -> float:
    """Seconds on the running loop's clock, by which it sleeps as well."""
    return asyncio.get_running_loop().time()


class HeadStart:
    """Holds other calls until the first is answered: a wrong key then costs one request and not sixteen.

    The first part of a stream is an answer.
    """

    def __init__(self) -> None:
        self._has_begun = False
        self._is_over = asyncio.Event()

    async def wait(self) -> None:
        if self._has_begun and not self._is_over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_over.wait(), HEAD_START_SECONDS)
        self._has_begun = True

    def end(self) -> None:
        self._is_over.set()

    def ended_by(self, relay: Relay) -> Relay:
        """`relay`, which also ends the head start."""

        async def relay_and_end(events: list[Event]) -> None:
            self.end()
            await relay(events)

        return relay_and_end


class RateLimiter:
    """One limit for all trials of a machine: additive increase, multiplicative decrease.

    When the provider says "too many", the limit becomes half of the calls that were really under way. It
    grows by one whenever as many calls as the limit have succeeded. Belongs to one event loop.
    """

    def __init__(self, limit: int = FIRST, highest: int = HIGHEST) -> None:
        self.limit = limit
        self.highest = highest
        self.under_way = 0
        self.resume_at = 0.0
        """The end of the pause of all calls, on the loop's clock."""
        self._decreases = 0
        self._successes = 0
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """Wait for a place among the calls under way and for the end of any pause.

        Yields the number of decreases until now, which `decrease` needs.
        """
        await self._enter()
        while (wait := self.resume_at - loop_time()) > 0:
            # The place is free during the pause, because the limit can fall meanwhile.
            self._leave()
            await asyncio.sleep(wait)
            await self._enter()
        try:
            yield self._decreases
        finally:
            self._leave()

    async def _enter(self) -> None:
        # Nothing is awaited after the last check: a call that is cancelled here has taken no place.
        while self.under_way >= self.limit:
            self._changed.clear()
            await self._changed.wait()
        self.under_way += 1

    def _leave(self) -> None:
        self.under_way -= 1
        self._changed.set()

    def pause(self, seconds: float) -> None:
        """Let no call begin in the next `seconds`: the provider's 429 for one call applies to all."""
        self.resume_at = max(self.resume_at, loop_time() + seconds)

    def increase(self) -> None:
        """Count a success. Call this inside the slot."""
        self._successes += 1
        if self._successes >= self.limit:
            self._successes = 0
            self.limit = min(self.limit + 1, self.highest)
            self._changed.set()

    def decrease(self, decreases: int) -> None:
        """Halve the limit after a 429. Call this inside the slot, with the number that the slot yielded.

        A call that began before the last decrease says nothing about the present limit and changes nothing.
        """
        if decreases != self._decreases:
            return
        self._decreases += 1
        self._successes = 0
        self.limit = max(1, min(self.limit, self.under_way) // 2)
