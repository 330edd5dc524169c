"""What an import of a paper used, what it could not use, and what a person should look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_super.words import counted


@dataclass
class PaperReport:
    """The remarks on one paper, in the order of its records."""

    paper: str
    used: dict[str, int] = field(default_factory=dict)
    """How many functions and experiments its task has; empty if it has no task."""
    recorded: dict[str, int] = field(default_factory=dict)
    """How many its files record, also in lines that cannot be used."""
    guessed: int = 0
    """How many values are found by a guessed pattern."""
    left_out: int = 0
    remarks: dict[str, list[str]] = field(default_factory=dict)
    """The places of each remark."""

    def note(self, place: str, text: str) -> None:
        self.remarks.setdefault(text, []).append(place)

    def leave_out(self, place: str, why: str) -> None:
        self.left_out += 1
        self.note(place, f"left out: {why}")

    def refuse(self, why: str) -> None:
        """The paper has no task, for these reasons, one a line."""
        self.left_out += 1
        self.used = {}
        for line in why.splitlines():
            self.note("no task", line)


def report_lines(report: PaperReport) -> Iterator[str]:
    figures = [
        f"{report.used.get(what, 0)} of {counted(count, what)}" for what, count in report.recorded.items()
    ]
    yield f"{report.paper}: {', '.join(figures) or 'nothing'} imported"
    yield from remark_lines(report)


def remark_lines(report: PaperReport) -> Iterator[str]:
    return (f"  {joined(places)}: {remark}" for remark, places in report.remarks.items())


def joined(places: Sequence[str]) -> str:
    """`experiments 1, 2` for `experiment 1` and `experiment 2`."""
    places = list(dict.fromkeys(places))
    what = places[0].partition(" ")[0]
    if len(places) == 1 or not all(place.startswith(f"{what} ") for place in places):
        return ", ".join(places)
    return f"{what}s {', '.join(place.partition(' ')[2] for place in places)}"
