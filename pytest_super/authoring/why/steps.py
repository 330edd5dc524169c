"""At which step a trial has lost its task: which of its states are tried, and what follows from them.

A state is that after the first steps of a trial, replayed in a fresh kernel. Gold goes on from it, either
with all of its cells or with those behind a place that the agent has reached by its landmarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pytest_super.authoring.why.search import CannotTell, Outcome, Search, Untold


@dataclass(frozen=True, kw_only=True)
class State:
    """After the first `steps` steps of the trial, from which gold goes on with its cells from `cell` on."""

    steps: int
    cell: int = 0
    """An index."""
    is_again: bool = False
    """Whether it is tried once more."""


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


StepAnswer: TypeAlias = Lost | NotLost | OnlyAgain | CannotTell
ALONE = State(steps=0)


@dataclass(frozen=True, kw_only=True)
class StepSearch:
    """Tries one state at a time: each costs about as much as the trial itself."""

    steps: int
    """The number of steps that can be replayed."""
    hit_by: Sequence[int | None]
    """For each landmark the number of the agent's step that hit it first."""
    answer: int
    """The index of the cell of gold that gives the answer."""
    tried: dict[State, Outcome] = field(default_factory=dict)

    def run(self) -> Search[State]:
        """Returns a StepAnswer."""
        try:
            return (yield from self.answer_of_states())
        except Untold as untold:
            return CannotTell(str(untold))

    def answer_of_states(self) -> Search[State]:
        if not (yield from self.finishes(ALONE)):
            why = self.tried[ALONE].error or "it does not solve the task"
            return CannotTell(f"gold fails in a fresh sandbox: {why}")
        reached = sorted(places(self.hit_by, self.tried[ALONE].landmarks, self.answer).items())
        # From the last place on gold runs least, and few steps are left to be searched.
        for step, cell in dict.fromkeys([*reached[-1:], *reached[:1]]):
            if (yield from self.finishes(self.last(cell))):
                return NotLost(cell)
            if step < self.steps and (yield from self.finishes(State(steps=step, cell=cell))):
                return (yield from self.boundary(step, cell))
        if (yield from self.finishes(self.last(0))):
            return OnlyAgain(self.tried[self.last(reached[-1][1])].error if reached else "")
        return (yield from self.boundary(0, 0))

    def last(self, cell: int) -> State:
        return State(steps=self.steps, cell=cell)

    def finishes(self, state: State) -> Search[State]:
        """Returns whether gold finishes from the state."""
        if state not in self.tried:
            self.tried.update((yield [state]))
        return self.tried[state].told()

    def boundary(self, solved: int, cell: int) -> Search[State]:
        """Between a number of steps after which gold finishes and all of them, after which it does not."""
        missed = self.steps
        while missed - solved > 1:
            middle = (solved + missed) // 2
            if (yield from self.finishes(State(steps=middle, cell=cell))):
                solved = middle
            else:
                missed = middle
        if not self.is_steady():
            before = State(steps=solved, cell=cell, is_again=True)
            after = State(steps=missed, cell=cell, is_again=True)
            again = yield [before, after]
            if not again[before].told() or again[after].told():
                return CannotTell(f"gold does not end alike after the first {solved} and {missed} steps")
        return Lost(step=missed, cell=cell)

    def is_steady(self) -> bool:
        """Whether gold gave the same answer more than once, and never another one."""
        answers = [one.answer for one in self.tried.values() if one.is_solved]
        return len(answers) > 1 and len(set(answers)) == 1


def places(hit_by: Sequence[int | None], gold: Sequence[int | None], answer: int) -> dict[int, int]:
    """Map the agent's steps to the cell of gold that comes after all landmarks hit by then.

    It has only steps after which this cell is another one than the first.
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
