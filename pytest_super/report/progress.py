"""The text of a run's progress: one line of totals, and one for each of the activities that last longest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_super.store.activity import Doing
from pytest_super.words import printable_line

MOST_ACTIVITIES = 4
# Of a name, when its line is too long.
SHORTEST_NAME = 16
ELLIPSIS = "…"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is."""

    all: int
    """Of its trials."""
    done: int
    running: int
    solved: int
    errors: int
    tokens: int
    cost_usd: float | None
    seconds: float
    """Since the first trial began."""
    seconds_of_done: float
    """The same when the last trial ended that is done."""

    @property
    def seconds_left(self) -> float:
        """As long as trials have taken until now; 0 if that is not known, or has been exceeded."""
        whole = self.seconds_of_done / self.done * self.all if self.done else 0.0
        return max(0.0, whole - self.seconds)

    def __str__(self) -> str:
        return ", ".join(self._facts())

    def _facts(self) -> Iterator[str]:
        yield f"{self.done}/{self.all} done"
        yield f"{self.running} running"
        yield f"{self.solved} solved"
        if self.errors:
            yield f"{self.errors} errors" if self.errors > 1 else "1 error"
        if self.tokens:
            yield f"{short_number(self.tokens)} tokens"
        if self.cost_usd is not None:
            yield f"${self.cost_usd:.{2 if self.cost_usd < 100 else 0}f}"
        if self.seconds_left:
            yield f"{duration(self.seconds_left)} left"


def short_number(number: int) -> str:
    """Write a number below a billion in at most 5 characters."""
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}" if number < 1000 * unit else f"{number // unit}{name}"
    return str(number)


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.{int(minutes < 600)}f} h"


def activity_lines(activities: Mapping[str, Doing], now: float, width: int) -> list[str]:
    """A line for each of those that last longest, which fits the width. The keys are names."""
    longest = sorted(activities.items(), key=lambda item: item[1].since)[:MOST_ACTIVITIES]
    return [activity_line(name, doing, now, width) for name, doing in longest]


def activity_line(name: str, doing: Doing, now: float, width: int) -> str:
    rest = printable_line(f"  {duration(max(0.0, now - doing.since))}  {doing}")
    return clipped(f"  {clipped(name, max(SHORTEST_NAME, width - len(rest) - 2))}{rest}", width)


def clipped(text: str, width: int) -> str:
    """The text on one line of at most this many characters; a longer one loses its middle."""
    line = one_cell_each(printable_line(text))
    if len(line) <= width:
        return line
    head = width // 2
    return line[:head] + ELLIPSIS + line[len(line) - (width - head - 1) :]


def one_cell_each(text: str) -> str:
    """A provider's text can have characters of two cells, with which a line would not fit."""
    line = text.replace("\t", " ")
    return "".join(character if character.isascii() or character == ELLIPSIS else "?" for character in line)
