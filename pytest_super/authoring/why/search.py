"""Which states of a trial are tried, and what follows from them: pure, apart from whoever tries them.

A state is that after the first steps of a trial, replayed in a fresh kernel. Gold goes on from it, either
with all of its cells or with those behind a place that the agent has reached by its landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Replay the first `steps` steps of the trial, then run gold's cells from the index `cell` on."""

    steps: int
    cell: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Whether gold has solved the task, or why that is not known."""

    is_solved: bool
    error: str = ""
    landmarks: Sequence[int | None] = ()
    """For each landmark the number of the step that hit it first, from 1, without pre-executed ones."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """Gold finishes from the state after the step before, and not from that after this one."""

    step: int
    """Its number among the agent's steps, from 1."""
    cell: int
    """The index of the first cell that gold has run."""


@dataclass(frozen=True)
class NotLost:
    """Gold finishes from the last state."""

    cell: int


@dataclass(frozen=True)
class OnlyAgain:
    """Gold finishes from the last state, but only with all of its cells."""

    why: str = ""
    """Why it does not with fewer; "" if landmarks do not tell where it could go on."""


@dataclass(frozen=True)
class CannotTell:
    why: str


Answer: TypeAlias = Lost | NotLost | OnlyAgain | CannotTell
Search: TypeAlias = "Generator[list[Probe], Mapping[Probe, Outcome], Answer]"
"""Yields states that are to be tried, several at once, and gets their outcomes."""


def search(steps: int, hit_by: Sequence[int | None], answer: int) -> Search:
    """Where a trial of so many steps has lost the task.

    `hit_by` has for each landmark the number of the agent's step that hit it first, and `answer` is the index
    of the cell of gold that gives the answer.
    """
    alone, again = Probe(steps=0, cell=0), Probe(steps=steps, cell=0)
    found = yield [alone, again]
    if not found[alone].is_solved:
        return CannotTell(
            f"gold fails in a fresh sandbox: {found[alone].error or 'it does not solve the task'}"
        )
    reached = places(hit_by, found[alone].landmarks, answer)
    why = ""
    if reached:
        first, cell = min(reached.items())
        last = max(reached.values())
        begin, end, far = (
            Probe(steps=first, cell=cell),
            Probe(steps=steps, cell=cell),
            Probe(steps=steps, cell=last),
        )
        found = {**found, **(yield list(dict.fromkeys([begin, end, far])))}
        if found[far].is_solved or found[end].is_solved:
            return NotLost(last if found[far].is_solved else cell)
        if found[begin].is_solved:
            return (yield from bisect(begin.steps, steps, cell))
        why = found[begin].error or found[far].error or "it misses the task"
    if found[again].is_solved:
        return OnlyAgain(why)
    return (yield from bisect(0, steps, 0))


def places(hit_by: Sequence[int | None], gold: Sequence[int | None], answer: int) -> dict[int, int]:
    """By the agent's step: the cell of gold that comes after all landmarks which the agent has hit by then.

    Only steps after which this cell is another one than the first.
    """
    cells = sorted({cell for cell in gold if cell is not None})
    found: dict[int, int] = {}
    for cell in cells:
        needed = [step for step, of in zip(hit_by, gold, strict=True) if of is not None and of <= cell]
        if any(step is None for step in needed):
            break
        last = max(step for step in needed if step is not None)
        found[last] = min(cell, answer)
    return {step: cell for step, cell in found.items() if cell}


def bisect(solved: int, missed: int, cell: int) -> Search:
    """Between a state from which gold finishes and a later one from which it does not.

    Both sides of what is found run again.
    """
    while missed - solved > 1:
        middle = (solved + missed) // 2
        probe = Probe(steps=middle, cell=cell)
        outcome = (yield [probe])[probe]
        solved, missed = (middle, missed) if outcome.is_solved else (solved, middle)
    before, after = Probe(steps=solved, cell=cell), Probe(steps=missed, cell=cell)
    found = yield [before, after]
    if not found[before].is_solved or found[after].is_solved:
        return CannotTell(
            f"gold does not end alike each time from the states after steps {solved} and {missed}"
        )
    return Lost(step=missed, cell=cell)
