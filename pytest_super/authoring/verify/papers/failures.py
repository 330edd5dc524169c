"""Why runs of a paper's original code failed: for each command how it ended, and its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.metrics.checking import name_of
from pytest_super.report.failure_line import wrong_lines

if TYPE_CHECKING:
    from pytest_super.authoring.verify.papers.runs import Outcome
    from pytest_super.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A command with values that are not right."""

    command: str
    """The name of its experiment."""
    exit_code: int | None
    """None if it was stopped, or if its values explain themselves."""
    printed: str
    """The end of what it printed, "" in the latter case."""
    log: str
    """The path of all that was printed in the run; "" if the sandbox was lost before."""
    text: str
    """How it ended, and its wrong values."""


def failures_of(paper: Task, outcomes: Iterable[Outcome]) -> list[Failure]:
    """Failures that differ only in what was printed count as one, that of the first run."""
    found: dict[str, Failure] = {}
    for outcome in outcomes:
        for one in failures_in(outcome, names_by_paper(paper)):
            # What is printed can have the paths of its sandbox.
            found.setdefault(one.text.replace(one.printed, ""), one)
    return list(found.values())


def names_by_paper(paper: Task) -> tuple[str, ...]:
    """The beginnings of the names of values that are graded by the paper."""
    return tuple(
        f"{one.name}: {name_of(check)} "
        for one in paper.experiments
        for check in one.checks
        if check.key in one.by_paper
    )


def failures_in(outcome: Outcome, by_paper: tuple[str, ...]) -> Iterator[Failure]:
    wrong: dict[str, list[dict[str, Any]]] = {}
    for value in outcome.values:
        if value.score < 1:
            told = asdict(value)
            # The name of a value in a list or mapping begins with that of its check.
            if f"{value.command}: {value.name} ".startswith(by_paper):
                told["expected"] = f"the paper's {value.expected}, by which it is graded"
            wrong.setdefault(value.command, []).append(told)
    for command, values in wrong.items():
        codes = [value["exit_code"] for value in values if value["exit_code"] is not None]
        yield Failure(
            command=command,
            exit_code=codes[0] if codes else None,
            printed="".join(value["printed"] for value in values),
            log=outcome.log,
            text="; ".join(wrong_lines(values)),
        )
