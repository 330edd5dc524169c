"""A search that says what is to be tried next, and gets the outcomes: pure, apart from whoever tries it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

P = TypeVar("P")


class Untold(Exception):
    """A try says nothing; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Whether what was tried has solved the task, or why that is not known."""

    is_solved: bool
    untold: str = ""
    """Why the try says nothing; "" if it does."""
    error: str = ""
    """Why gold has no answer."""
    answer: str = ""
    """The submission and the values of a grader. Gold that gives the same one each time does not waver."""
    landmarks: Sequence[int | None] = ()
    """For each landmark the number of the step that hit it first, from 1, without pre-executed ones."""
    difference: str = ""
    """The first replayed step that is not as recorded, and how it differs."""

    def told(self) -> bool:
        """Whether it is solved. Raises Untold."""
        if self.untold:
            raise Untold(self.untold)
        return self.is_solved


@dataclass(frozen=True)
class CannotTell:
    why: str


Search = Generator[list[P], Mapping[P, Outcome], Any]
"""Yields what is to be tried, several at once, and gets the outcomes. Returns an answer."""
