"""When models are called: how many calls run at once, and which failures are retried after which pauses."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from pytest_super.model.completion import Failure, ModelCallError

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
        """Wait for a place and the end of any pause. Yields the number of decreases, for `decrease`."""
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
        """Halve the limit after a 429, unless the call began before the last decrease, by its slot."""
        if decreases != self._decreases:
            return
        self._decreases += 1
        self._successes = 0
        self.limit = max(1, min(self.limit, self.under_way) // 2)


T = TypeVar("T")

# In place of the provider's sentence.
SHORT = {Failure.RATE_LIMITED: "429"}

MAX_TRIES = 8
# One failure without an explanation can be a glitch; two are not.
MAX_UNCLEAR = 2
# Seconds. The bound of the pauses doubles from the first to the longest; each pause is drawn below it.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
LONGEST_RETRY_AFTER = 300.0
MAX_SECONDS = 600.0


@dataclass(eq=False)
class Tries:
    """How far a call has come, so that it can be shown."""

    failed: int = 0
    failure: str = ""
    """Why the last try failed."""
    resume_at: float = 0.0
    """The end of the pause before the next try, on the loop's clock."""
    is_asked: bool = False
    """Whether the provider is working on it at this moment."""
    seconds: float = 0.0
    """For which the provider worked on the last try."""


class RetryPolicy:
    """Retries the calls of all trials of a machine. Belongs to one event loop.

    A call is tried at most MAX_TRIES times, and not again once its pauses and its retries have taken
    MAX_SECONDS; time spent waiting for a slot of the rate limiter does not count. `draw` returns a number in
    [0, 1). `has_answers` says whether an earlier gateway of the run has had an answer.
    """

    def __init__(
        self,
        limiter: RateLimiter | None = None,
        draw: Callable[[], float] = random.random,
        has_answers: Callable[[], bool] = lambda: False,
    ) -> None:
        self.limiter = limiter or RateLimiter()
        self._draw = draw
        self._has_answers = has_answers
        self._has_connected = False
        self._fatal: ModelCallError | None = None

    async def call(
        self,
        attempt: Callable[[], Awaitable[T]],
        reserve: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        tries: Tries | None = None,
    ) -> T:
        """The first result of `attempt`. `tries` is kept up to date.

        Each attempt runs inside its own `reserve()`, which is entered before it waits for a slot: a call that
        waits in `reserve` takes no slot from others.

        Raises ModelCallError: at once if it is final, otherwise when no retry is left, then a FATAL one if no
        call of the run has ever connected. After the first FATAL failure, every call raises that one without
        an attempt. An exception of `reserve` also ends the call.
        """
        began, spent = loop_time(), 0.0
        tries, unclear = tries or Tries(), 0
        while True:
            try:
                async with reserve():
                    return await self._try(attempt, tries)
            except ModelCallError as error:
                if error.is_final:
                    raise
                failed = error
            tries.failed += 1
            tries.failure = SHORT.get(failed.failure, failed.message)
            unclear += failed.failure is Failure.UNCLEAR
            # Also for the last try: after a 429, the other calls have to pause.
            pause = self._pause(failed, tries.failed)
            tries.resume_at = loop_time() + pause
            # The first attempt does not count, so that a provider that hangs until the time-out is tried
            # twice.
            spent += pause + (tries.seconds if tries.failed > 1 else 0.0)
            if tries.failed >= MAX_TRIES or spent > MAX_SECONDS or unclear >= MAX_UNCLEAR:
                raise self._gave_up(failed, tries.failed, loop_time() - began)
            await asyncio.sleep(pause)

    def waits_for(self, tries: Tries) -> str:
        """What a call waits for; "" if for nothing but the provider's first answer."""
        wait = max(tries.resume_at, self.limiter.resume_at) - loop_time()
        parts = [tries.failure]
        if not tries.is_asked:
            parts.append(f"waits {wait:.0f} s" if wait > 0 else "waits for other calls")
        if tries.failed:
            parts.append(f"try {tries.failed + 1} of {MAX_TRIES}")
        return ", ".join(filter(None, parts))

    async def _try(self, attempt: Callable[[], Awaitable[T]], tries: Tries) -> T:
        """The result of one attempt, made in a slot. Raises ModelCallError."""
        # Checked before the slot as well, because the limiter may be in a long pause.
        self._raise_known_fatal()
        async with self.limiter.slot() as decreases:
            self._raise_known_fatal()
            began, tries.is_asked = loop_time(), True
            try:
                result = await attempt()
            except ModelCallError as error:
                self._learn(error, decreases)
                raise
            finally:
                tries.is_asked, tries.seconds = False, loop_time() - began
            self._has_connected = True
            self.limiter.increase()
            return result

    def _raise_known_fatal(self) -> None:
        if self._fatal:
            # A new exception, because one that is raised several times mixes up its tracebacks.
            raise ModelCallError(self._fatal.failure, self._fatal.message)

    def _learn(self, error: ModelCallError, decreases: int) -> None:
        """Apply what the failure of one call means for all calls."""
        self._has_connected |= not error.is_unconnected
        if error.failure is Failure.FATAL:
            self._fatal = error
        # A final one comes from a script and says nothing about the rate of other calls.
        elif error.failure is Failure.RATE_LIMITED and not error.is_final:
            self.limiter.decrease(decreases)

    def _pause(self, error: ModelCallError, tries: int) -> float:
        """The seconds before the next attempt; infinite if the provider asks for more than any pause."""
        asked = error.retry_after or 0.0
        if asked > LONGEST_RETRY_AFTER:
            return inf
        pause = max(asked, self._draw() * min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (tries - 1)))
        if error.failure is Failure.RATE_LIMITED:
            self.limiter.pause(pause)
        return pause

    def _gave_up(self, error: ModelCallError, tries: int, seconds: float) -> ModelCallError:
        """The last failure of a call that is not retried any more."""
        tried = "1 try" if tries == 1 else f"{tries} tries"
        message = f"gave up after {tried} in {seconds:.0f} s: {error.message}"
        if (asked := error.retry_after or 0.0) > LONGEST_RETRY_AFTER:
            message += (
                f": it asks for a pause of {asked:.0f} s, and the longest is {LONGEST_RETRY_AFTER:.0f} s"
            )
        if self._has_connected or self._has_answers():
            return ModelCallError(error.failure, message, is_final=True)
        message += ": no call of the run has ever connected, so check the model's address and the network"
        self._fatal = ModelCallError(Failure.FATAL, message)
        return self._fatal
