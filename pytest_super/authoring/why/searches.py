"""The searches of `why`: which states or bodies are tried next, and what follows from the outcomes.

They are pure, apart from whoever tries. A state is that after the first steps of a trial, replayed in a fresh
kernel. Gold goes on from it, either with all of its cells or with those behind a place that the agent has
reached by its landmarks.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

P = TypeVar("P")


class Untold(Exception):
    """A try says nothing; the text says why."""


@dataclass(frozen=True, kw_only=True)
class TryResult:
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


Search = Generator[list[P], Mapping[P, TryResult], Any]
"""Yields what is to be tried, several at once, and gets the outcomes. Returns an answer."""


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
    tried: dict[State, TryResult] = field(default_factory=dict)

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
        answers = [one.answer for one in self.tried.values() if one.is_solved]
        # Unless gold gave the same answer more than once, and never another one.
        if len(answers) < 2 or len(set(answers)) > 1:
            before = State(steps=solved, cell=cell, is_again=True)
            after = State(steps=missed, cell=cell, is_again=True)
            again = yield [before, after]
            if not again[before].told() or again[after].told():
                return CannotTell(f"gold does not end alike after the first {solved} and {missed} steps")
        return Lost(step=missed, cell=cell)


def places(hit_by: Sequence[int | None], gold: Sequence[int | None], answer: int) -> dict[int, int]:
    """Map the agent's steps to the cell of gold, not the first, after all landmarks hit by then."""
    cells = sorted({cell for cell in gold if cell is not None})
    found: dict[int, int] = {}
    for cell in cells:
        needed = [step for step, of in zip(hit_by, gold, strict=True) if of is not None and of <= cell]
        if any(step is None for step in needed):
            break
        found[max(step for step in needed if step is not None)] = min(cell, answer)
    return {step: cell for step, cell in found.items() if cell}


@dataclass(frozen=True)
class Kept:
    """The agent's bodies of these targets, and the original ones of all others."""

    bodies: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WrongBodies:
    """The experiments miss with each of these bodies, and are right with the original ones in their place."""

    targets: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class WrongTogether:
    """Further bodies are wrong, but only with others of the agent's."""

    alone: Sequence[str]
    """The targets whose bodies are wrong alone."""
    others: Sequence[str]
    """The bodies of these targets are right alone, and wrong together."""


@dataclass(frozen=True)
class NoneWrong:
    """The experiments are right with all bodies of the agent when they run again."""


BodiesAnswer: TypeAlias = WrongBodies | WrongTogether | NoneWrong | CannotTell


def search_bodies(targets: Sequence[str]) -> Search[Kept]:
    """Returns a BodiesAnswer. A body that is tried alone cannot be hidden by another wrong one."""
    none, every = Kept(()), Kept(tuple(targets))
    alone = {one: Kept((one,)) for one in targets}
    found = yield list(dict.fromkeys([none, every, *alone.values()]))
    if untold := next(filter(None, (one.untold for one in found.values())), ""):
        return CannotTell(untold)
    if not found[none].is_solved:
        return CannotTell(f"the original code fails: {found[none].error or 'its values are not right'}")
    if found[every].is_solved:
        return NoneWrong()
    wrong = [one for one, kept in alone.items() if not found[kept].is_solved]
    right = [one for one in targets if one not in wrong]
    if len(right) < 2:
        return WrongBodies(targets=wrong)
    together = Kept(tuple(right))
    if together not in found:
        found = yield [together]
        if untold := found[together].untold:
            return CannotTell(untold)
    return (
        WrongBodies(targets=wrong) if found[together].is_solved else WrongTogether(alone=wrong, others=right)
    )
