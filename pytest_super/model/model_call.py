"""One request of a trial on its way to an answer."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from pytest_super.model.completion import NO_USAGE, Usage
from pytest_super.model.failures import ModelCallError
from pytest_super.store.trajectory import now

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from pytest_super.model.answer import Answer, Request
    from pytest_super.model.token_estimate import MaxUsage


# Compared by identity: calls are kept in a set, and two of them can have the same request.
@dataclass(kw_only=True, eq=False)
class ModelCall:
    """A trial's request; the provider can be asked several times for it."""

    trial: str
    task: str
    request: Request
    characters: int
    most: MaxUsage
    """For each attempt."""
    started: str = field(default_factory=now)
    began: float = field(default_factory=monotonic)
    attempts: int = 0
    usage: Usage = NO_USAGE
    """The sum over all attempts until now."""
    # Not a parameter: the task that sets it needs the call.
    result: asyncio.Future[Answer] = field(init=False)
    is_asked: bool = False
    """Whether the provider is working on it at this moment."""
    is_abandoned: bool = False

    @property
    def seconds(self) -> float:
        return monotonic() - self.began

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Marks the time in which the provider works on the call."""
        self.attempts += 1
        self.is_asked = True
        try:
            yield
        except ModelCallError:
            # Otherwise the retry policy would ask again, for nobody.
            if self.is_abandoned:
                self.result.cancel()
            raise
        finally:
            self.is_asked = False

    def abandon(self) -> None:
        """Do not ask the provider again, because the client has left.

        An attempt that the provider is working on continues and is booked, because it is charged anyway.
        """
        self.is_abandoned = True
        if not self.is_asked:
            self.result.cancel()
