"""How long a trial has waited in the gateway for anything but answers: that is not wall time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from pytest_super.model.failures import ModelCallError


class WaitClock:
    """Runs while the trial has calls under way and the provider works on none of them.

    That is while all of them pause for a retry, for a rate limit or for other calls. The time of attempts
    that fail and are retried is added when they have failed, unless the provider answered another call of the
    trial meanwhile. So an agent that asks in many threads does not stop its wall time by one call that waits.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waited = 0.0
        self._calls = 0
        self._attempts = 0
        self._is_answered = False
        # The beginning of what is not in `_waited` yet: of waiting, or of attempts under way at once.
        self._since = 0.0

    @property
    def seconds(self) -> float:
        is_waiting = self._calls > 0 and self._attempts == 0
        return self._waited + (self._clock() - self._since if is_waiting else 0.0)

    def resume(self, seconds: float) -> None:
        """Continue from what the clock of an earlier gateway showed."""
        self._waited = seconds

    @contextmanager
    def call(self) -> Iterator[None]:
        """Marks a call, from the request to its last answer or failure."""
        self._settle()
        self._calls += 1
        try:
            yield
        finally:
            self._settle()
            self._calls -= 1

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Marks the time in which the provider works on a call. A final failure is an answer."""
        if not self._attempts:
            self._settle()
            self._is_answered = False
        self._attempts += 1
        try:
            yield
            self._is_answered = True
        except ModelCallError as error:
            self._is_answered |= error.is_final
            raise
        finally:
            self._attempts -= 1
            if not self._attempts and self._is_answered:
                self._since = self._clock()

    def _settle(self) -> None:
        if not self._attempts:
            self._waited, self._since = self.seconds, self._clock()
