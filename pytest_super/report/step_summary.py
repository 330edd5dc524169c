"""A comparison as Markdown, for the summary of a job of GitHub Actions: the tasks that flipped come first."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.gates.next_steps import compared_lines
from pytest_super.report.comparison import HEADS, row_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_super.comparison.comparison import Comparison


def markdown(comparison: Comparison) -> str:
    """GitHub's Markdown. Ids of tasks and names of sets have no characters that it would read as markup."""
    return "\n".join([*lines_of(comparison), ""])


def lines_of(comparison: Comparison) -> Iterator[str]:
    """The first line is a heading."""
    yield f"Agent: {comparison.verdict}"
    yield ""
    yield from (f"- {line}" for line in compared_lines(comparison))
    if comparison.flips:
        yield ""
        yield from table(
            ("", "task", "baseline", "candidate"),
            (
                (word, task.id, f"{fmean(task.baseline.values):.2f}", f"{fmean(task.candidate.values):.2f}")
                for word, task in comparison.flips
            ),
        )
    yield ""
    yield from table(HEADS, (row_of(one) for one in comparison.sets))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
