"""The text that the command prints: a line for each finding, and the totals."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

from pytest_super.authoring.verify.finding import Kind
from pytest_super.words import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_super.authoring.verify.finding import Finding
    from pytest_super.authoring.verify.verification import Verification


def verification_lines(verification: Verification, run: Path) -> Iterator[str]:
    for finding in verification.findings:
        yield finding_line(finding)
    if without := verification.without_solution:
        yield one_line(f"not run {counted(len(without), 'task')} without a solution: {', '.join(without)}")
    if verification.epochs == 1:
        yield "one epoch alone cannot show whether tasks are flaky"
    of = f"{counted(verification.tasks, 'task')}, {counted(verification.trials, 'trial')}"
    yield f"{of} in {counted(verification.epochs, 'epoch')}: {counts_of(verification)}"
    yield f"results: {run}"


def finding_line(finding: Finding) -> str:
    return one_line(f"{finding.kind:<7} {finding.text}")


def counts_of(verification: Verification) -> str:
    """How many tasks have each kind of finding."""
    tasks = Counter(kind for kind, _ in {(finding.kind, finding.task) for finding in verification.findings})
    return ", ".join(f"{tasks[kind]} {kind}" for kind in get_args(Kind) if tasks[kind]) or "nothing was found"


def verification_data(verification: Verification, run: Path) -> dict[str, Any]:
    """The same as plain JSON values, with no text shortened."""
    return {"run": str(run), **asdict(verification)}
