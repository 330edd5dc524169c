"""Finds all problems of some tasks: a line for each finding, and the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import get_args

from pytest_super.authoring.verify.finding import Finding, Kind, finding
from pytest_super.authoring.verify.gold_findings import failures, variations, weak_graders
from pytest_super.authoring.verify.gold_run import GoldTrial
from pytest_super.authoring.verify.leaks import ReadTexts, leaks
from pytest_super.authoring.verify.network import ReadVersions, network_leaks
from pytest_super.authoring.verify.texts import other_versions, repository_texts
from pytest_super.tasks.task import Task
from pytest_super.words import counted, one_line


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The findings, and how much was checked."""

    findings: list[Finding]
    tasks: int
    trials: int
    epochs: int
    without_solution: list[str]
    """Ids of the tasks that cannot be run, and were only searched for leaks."""


def verify(tasks: Sequence[Task], gold: Mapping[str, Sequence[GoldTrial]]) -> Verification:
    """Judge tasks by their trials, by task id; trials of other tasks are ignored."""
    trials = [trial for task in tasks for trial in gold.get(task.id, ())]
    # Tasks that share a repository follow each other, and its texts can be many.
    read_texts = lru_cache(maxsize=1)(repository_texts)
    read_versions = lru_cache(maxsize=1)(other_versions)
    found = (findings_of(task, gold.get(task.id, ()), read_texts, read_versions) for task in tasks)
    return Verification(
        findings=list(chain.from_iterable(found)),
        tasks=len(tasks),
        trials=len(trials),
        epochs=len({trial.result.epoch for trial in trials}),
        without_solution=[task.id for task in tasks if task.solution is None],
    )


def findings_of(
    task: Task, trials: Sequence[GoldTrial], read_texts: ReadTexts, read_versions: ReadVersions
) -> Iterator[Finding]:
    if task.solution is not None and not trials:
        yield finding("unknown", task.id, "the run has no trial of it")
    yield from failures(task, trials)
    yield from weak_graders(task, trials)
    yield from variations(task, trials)
    prefixes = [trial.prefix for trial in trials if trial.prefix]
    yield from leaks(task, prefixes[0] if prefixes else [], read_texts)
    yield from network_leaks(task, read_texts, read_versions)


def verification_lines(verification: Verification, run: Path) -> Iterator[str]:
    for one in verification.findings:
        yield one_line(f"{one.kind:<7} {one.text}")
    if without := verification.without_solution:
        yield one_line(f"not run {counted(len(without), 'task')} without a solution: {', '.join(without)}")
    if verification.epochs == 1:
        yield "one epoch alone cannot show whether tasks are flaky"
    of = f"{counted(verification.tasks, 'task')}, {counted(verification.trials, 'trial')}"
    # How many tasks have each kind of finding.
    tasks = Counter(kind for kind, _ in {(one.kind, one.task) for one in verification.findings})
    counts = ", ".join(f"{tasks[kind]} {kind}" for kind in get_args(Kind) if tasks[kind])
    yield f"{of} in {counted(verification.epochs, 'epoch')}: {counts or 'nothing was found'}"
    yield f"results: {run}"
