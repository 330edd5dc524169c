"""What the trials of a run asked otherwise than those of another one, grouped by what differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING

from pytest_super.words import counted, named, one_line

if TYPE_CHECKING:
    from pytest_super.gate.comparison.asked import AskedTrial

MOST_CAUSES, MOST_NAMED = 5, 5
NUMBER = re.compile(r"\d+ ")


@dataclass(frozen=True)
class Cause:
    """Trials whose requests first differ by the same text."""

    words: str
    trials: list[AskedTrial]

    @property
    def span(self) -> str:
        calls = sorted(one.call for one in self.trials)
        return f"call {calls[0]}" if calls[0] == calls[-1] else f"calls {calls[0]} to {calls[-1]}"


def asked_lines(trials: Iterable[AskedTrial]) -> Iterator[str]:
    """How many trials asked the same, and what the others asked; nothing without trials."""
    known = list(trials)
    if not known:
        return
    causes = causes_of(known)
    yield summary(known)
    for cause in causes[:MOST_CAUSES]:
        names = named([one.name for one in cause.trials], MOST_NAMED)
        yield one_line(f"  {len(cause.trials)} from {cause.span} on, {cause.words} ({names})")
    if len(causes) > MOST_CAUSES:
        rest = sum(len(cause.trials) for cause in causes[MOST_CAUSES:])
        yield f"  {rest} for {counted(len(causes) - MOST_CAUSES, 'other reason')}"


def summary(trials: Sequence[AskedTrial]) -> str:
    equal = sum(one.is_equal for one in trials)
    words = f"{equal} of {counted(len(trials), 'trial')} asked their model the same throughout"
    others = len(trials) - equal
    return f"{words}, {counted(others, 'trial')} did not:" if others else words


def causes_of(trials: Iterable[AskedTrial]) -> list[Cause]:
    """The trials that did not ask the same, by the text that differs, most frequent first."""
    causes: dict[str, list[AskedTrial]] = {}
    for one in trials:
        if not one.is_equal:
            # The number of a message differs between trials.
            causes.setdefault(NUMBER.sub("", str(one.difference), count=1), []).append(one)
    return sorted(starmap(Cause, causes.items()), key=lambda cause: -len(cause.trials))
