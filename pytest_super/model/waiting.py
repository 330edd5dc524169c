"""How long a trial's calls wait: tells a provider that does not answer from a slow agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic


class Waiting:
    """The calls of one trial, made from any thread."""

    def __init__(self, seconds_left: Callable[[], float]) -> None:
        """`seconds_left` until the trial's limit of time, negative after it."""
        self.longest = 0.0
        """Seconds of the longest call that was answered, without its pauses."""
        self.paused = 0.0
        """Seconds for which the calls had paused until the last answer, by the gateway's clock."""
        self._seconds_left = seconds_left
        self._under_way: dict[object, float] = {}
        self._cut = 0.0

    @contextmanager
    def call(self) -> Iterator[None]:
        """Marks one call. An exception in the block means that no answer came."""
        key, began, paused = object(), monotonic(), self.paused
        self._under_way[key] = began
        try:
            yield
            self.longest = max(self.longest, monotonic() - began - (self.paused - paused))
        except BaseException:
            # A call that ended before the limit, because its client left, says nothing about the limit.
            if round(self._seconds_left(), 3) <= 0:
                self._cut = max(self._cut, self._waited(began))
            raise
        finally:
            del self._under_way[key]

    def at_limit(self) -> float:
        """Seconds for which the longest unanswered call had waited when the limit was reached; 0 for none."""
        return max([self._cut, *map(self._waited, list(self._under_way.values()))])

    def _waited(self, began: float) -> float:
        return max(0.0, monotonic() - began + min(0.0, self._seconds_left()))
