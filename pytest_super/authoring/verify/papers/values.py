"""What the values of runs of a paper's original code show: why they failed, and how far numbers spread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pytest_super.authoring.verify.gold_findings import are_different
from pytest_super.authoring.verify.papers.runs import RunResult
from pytest_super.metrics.evidence import GradedValue
from pytest_super.metrics.graded import name_of
from pytest_super.metrics.leaves import is_number
from pytest_super.report.failure_line import wrong_lines
from pytest_super.tasks.grade import Check
from pytest_super.tasks.paper import graded_commands
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


def failures_of(paper: Task, results: Iterable[RunResult]) -> list[Failure]:
    """Failures that differ only in what was printed count as one, that of the first run."""
    found: dict[str, Failure] = {}
    for result in results:
        for one in failures_in(result, names_by_paper(paper)):
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


def failures_in(result: RunResult, by_paper: tuple[str, ...]) -> Iterator[Failure]:
    wrong: dict[str, list[dict[str, Any]]] = {}
    for value in result.values:
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
            log=result.log,
            text="; ".join(wrong_lines(values)),
        )


# A proposed tolerance is so many times the largest difference of a run from the mean of all.
MARGIN = 3.0


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A number of the experiments that differs between runs of the original code."""

    name: str
    values: list[float]
    allowed: float = 0.0
    """The largest difference that the value's own tolerance allows."""

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def needed(self) -> float:
        """A difference from the mean that all of them have, with a margin."""
        return MARGIN * max(abs(value - self.mean) for value in self.values)

    @property
    def tolerance(self) -> dict[str, float]:
        """A tolerance, `rel` or `abs`, that allows for it; empty if the value's own suffices."""
        if self.allowed >= self.needed:
            return {}
        return {"rel": self.needed / abs(self.mean)} if self.mean else {"abs": self.needed}


def spreads_of(paper: Task, results: Iterable[RunResult]) -> list[Spread]:
    """The numbers that differ between runs by more than the order of sums explains."""
    commands = graded_commands(paper.experiments)
    checks = {f"{one.label}: {name_of(check)} ": check for one in commands for check in one.checks}
    found: dict[str, list[float]] = {}
    allowed: dict[str, float] = {}
    for result in results:
        for value in result.values:
            number = as_number(value.found)
            if number is not None:
                name = f"{value.command}: {value.name}"
                found.setdefault(name, []).append(number)
                allowed[name] = allowed_by(checks, name, value)
    return [
        Spread(name=name, values=values, allowed=allowed[name])
        for name, values in found.items()
        if are_different(values)
    ]


def allowed_by(checks: Mapping[str, Check], name: str, value: GradedValue) -> float:
    # The name of a value in a list or mapping begins with that of its check.
    own = max((one for one in checks if f"{name} ".startswith(one)), key=len, default=None)
    if own is None:
        return 0.0
    check = checks[own]
    if check.interval is not None:
        low, high = check.interval
        return (high - low) / 2
    return max(check.rel * abs(as_number(value.expected) or 0), check.abs)


def as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if is_number(number) else None
