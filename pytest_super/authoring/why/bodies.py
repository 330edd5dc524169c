"""Which of the bodies that an agent wrote are wrong: each is tried alone among those of the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pytest_super.authoring.why.search import CannotTell, Search


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
