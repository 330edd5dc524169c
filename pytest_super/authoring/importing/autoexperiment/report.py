"""What an import of a paper used, what it could not use, and what a person should look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_super.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    remarks: list[str] = field(default_factory=list)

    def note(self, place: str, text: str) -> None:
        self.remarks.append(f"{place}: {text}")

    def leave_out(self, place: str, why: str) -> None:
        self.left_out += 1
        self.note(place, f"left out: {why}")

    def refuse(self, why: str) -> None:
        """The paper has no task, for these reasons, one a line."""
        self.left_out += 1
        self.used = {}
        self.remarks.extend(f"no task: {line}" for line in why.splitlines())


def report_lines(report: PaperReport) -> Iterator[str]:
    figures = [
        f"{report.used.get(what, 0)} of {counted(count, what)}" for what, count in report.recorded.items()
    ]
    yield f"{report.paper}: {', '.join(figures) or 'nothing'} used"
    yield from (f"  {remark}" for remark in report.remarks)
