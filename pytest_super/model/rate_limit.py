"""How many model calls run at once, and when all of them pause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Seconds that all other calls wait for the first answer: a wrong key then costs one request and not sixteen.
HEAD_START = 5.0

# Calls at once: at the start of a run, and at most.
FIRST, HIGHEST = 32, 256


def loop_time() -> float:
    """Seconds on the running loop's clock, by which it sleeps as well."""
    return asyncio.get_running_loop().time()


class RateLimiter:
    """One limit for all trials of a run: additive increase, multiplicative decrease.

    When the provider says "too many", the limit becomes half of the calls that were really under way. It
    grows by one whenever as many calls as the limit have succeeded. Belongs to one event loop.

    At first calls are made one by one, until one succeeds or `head_start` seconds have passed.
    """

    def __init__(self, limit: int = FIRST, highest: int = HIGHEST, head_start: float = 0.0) -> None:
        self.limit = limit
        self.highest = highest
        self._head_start = head_start
        """0 once it is over."""
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
        if self._head_start:
            asyncio.get_running_loop().call_later(self._head_start, self.end_head_start)
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
        while self.under_way >= (1 if self._head_start else self.limit):
            self._changed.clear()
            await self._changed.wait()
        self.under_way += 1

    def _leave(self) -> None:
        self.under_way -= 1
        self._changed.set()

    def end_head_start(self) -> None:
        """The provider works, or takes its time. The first part of a stream shows the former as well."""
        self._head_start = 0.0
        self._changed.set()

    def pause(self, seconds: float) -> None:
        """Let no call begin in the next `seconds`: the provider's 429 for one call applies to all."""
        self.resume_at = max(self.resume_at, loop_time() + seconds)

    def increase(self) -> None:
        """Count a success. Call this inside the slot."""
        self.end_head_start()
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
