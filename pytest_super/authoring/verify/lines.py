"""The text that the command prints: a line for each finding, and the totals."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_super.report.terminal import one_line
from pytest_super.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_super.authoring.verify.finding import Kind
    from pytest_super.authoring.verify.verdict import Verdict

KINDS: tuple[Kind, ...] = ("fails", "flaky", "leaks", "unknown")


def verdict_lines(verdict: Verdict, run: Path) -> Iterator[str]:
    for finding in verdict.findings:
        yield one_line(f"{finding.kind:<7} {finding.text}")
    if without := verdict.without_solution:
        yield one_line(f"not run {counted(len(without), 'task')} without a solution: {', '.join(without)}")
    if verdict.epochs == 1:
        yield "one epoch alone cannot show whether tasks are flaky"
    of = f"{counted(verdict.tasks, 'task')}, {counted(verdict.trials, 'trial')}"
    yield f"{of} in {counted(verdict.epochs, 'epoch')}: {counts_of(verdict)}"
    yield f"results: {run}"


def counts_of(verdict: Verdict) -> str:
    """How many tasks have each kind of finding."""
    tasks = Counter(kind for kind, _ in {(finding.kind, finding.task) for finding in verdict.findings})
    return ", ".join(f"{tasks[kind]} {kind}" for kind in KINDS if tasks[kind]) or "nothing was found"


def verdict_data(verdict: Verdict, run: Path) -> dict[str, Any]:
    """The same as plain JSON values, with no text shortened."""
    return {"run": str(run), **asdict(verdict)}
