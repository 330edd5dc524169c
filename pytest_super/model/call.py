"""One request on its way to an answer."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from pytest_super.model.answer import NOTHING, ModelCallError
from pytest_super.store.trajectory import now

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from pytest_super.model.answer import Request
    from pytest_super.model.bound import Bound
    from pytest_super.model.completion import Used


@dataclass(kw_only=True, eq=False)
class Call:
    """A trial's request, for which the provider may be asked several times."""

    trial: str
    task: str
    request: Request
    characters: int
    bound: Bound
    """Of each attempt."""
    started: str = field(default_factory=now)
    began: float = field(default_factory=monotonic)
    attempts: int = 0
    used: Used = NOTHING
    """By all attempts until now."""
    made: asyncio.Future[tuple[dict[str, Any], dict[str, Any]]] = field(init=False)
    """Who makes it, from the start."""
    is_asked: bool = False
    """The provider has it at this moment."""
    is_left: bool = False

    @property
    def seconds(self) -> float:
        return monotonic() - self.began

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While the provider has it."""
        self.attempts += 1
        self.is_asked = True
        try:
            yield
        except ModelCallError:
            if self.is_left:
                self.made.cancel()
            raise
        finally:
            self.is_asked = False

    def leave(self) -> None:
        """Its client no longer waits: the provider is not asked again. What it is asked already goes on."""
        self.is_left = True
        if not self.is_asked:
            self.made.cancel()
