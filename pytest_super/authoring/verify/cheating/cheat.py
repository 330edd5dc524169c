"""One way to a good score without the work, and what the cheater knows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_super.agents.gold_functions import writing
from pytest_super.functions.names import by_file
from pytest_super.functions.repository import masked_files
from pytest_super.functions.splicing import probed
from pytest_super.metrics.registry import BUILT_IN
from pytest_super.sources import fetch
from pytest_super.tasks.paper_item import PaperItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_super.tasks.grade import Check, GradedCommand
    from pytest_super.tasks.task import Task
    from pytest_super.trial.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Known:
    """All that is expected of the agent, and what the gold solution printed, but nothing hidden besides."""

    task: Task
    outputs: Sequence[str] = ()
    """Of the cells of gold."""
    printed: str = ""
    """By the commands of the grader, of gold's work."""

    @property
    def base(self) -> PurePosixPath:
        """The folder of the repository in the working directory."""
        repository = self.task.repository
        is_there = repository is not None and repository.provide
        return PurePosixPath(fetch(repository, base=self.task.folder).name if repository and is_there else "")

    def result_files(self) -> dict[str, str]:
        """The content that the grader wants to read, by its path in the repository's folder."""
        documents: dict[str, Any] = {}
        texts = {}
        for check in self.checks():
            if check.json_ is not None:
                place = documents.setdefault(check.json_.file, {})
                documents[check.json_.file] = with_value(place, check.json_.pointer, wanted(check))
            elif check.number is not None:
                texts[check.number] = str(wanted(check))
        return {**texts, **{path: json.dumps(document) for path, document in documents.items()}}

    def checks(self) -> Iterator[Check]:
        assert self.task.grade is not None
        commands: Sequence[GradedCommand] = self.task.experiments or [self.task.grade]
        return (check for command in commands for check in command.result)


def wanted(check: Check) -> Any:
    return check.expected if check.interval is None else sum(check.interval) / 2


def with_value(document: Any, pointer: str, value: Any) -> Any:
    """The document with a value at a JSON pointer, whose parts are keys."""
    if not pointer:
        return value
    *parents, last = pointer[1:].split("/")
    place = document
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return document


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """An entry of the corpus. Its module's docstring says what it does."""

    aim: str
    """The name of the metric that it is after."""
    closing: str
    """What closes the way, for the task's author."""
    act: Callable[[Trial, Known], Any]
    """Acts, and returns what is submitted."""
    is_inherent: bool = False
    """Whether nothing closes it for a task that is judged by this metric."""
    papers_only: bool = False
    name: str = ""
    """That of its module."""
    does: str = ""
    """What it does: the docstring of its module."""

    def applies(self, task: Task) -> bool:
        aimed = {metric.name: metric for metric in BUILT_IN}[self.aim]
        return aimed.applies(task) and (isinstance(task, PaperItem) or not self.papers_only)


def coded(code: Callable[[Known], str]) -> Callable[[Trial, Known], None]:
    """Acts by code in each file that the grader collects: its content, or the body of each function."""

    def act(trial: Trial, known: Known) -> None:
        # One line, which fits into a body.
        line = f"exec({code(known)!r}, {{}})"
        for path, data in files_with(known, line):
            trial.execute(writing(known.base / path, data))

    return act


def files_with(known: Known, line: str, *, keeps_bodies: bool = False) -> Iterator[tuple[str, bytes]]:
    """The files that the grader collects, with a line of code at the beginning, by their paths.

    Of an item of a paper the line is in each masked body, before a stub or before the original body.
    """
    task = known.task
    if not isinstance(task, PaperItem):
        assert task.grade is not None
        yield from ((path, line.encode()) for path in task.grade.collect or () if path.endswith(".py"))
        return
    assert task.repository is not None
    folder = fetch(task.repository, base=task.folder)
    targets = [one.target for one in task.functions]
    masked = masked_files(folder, targets, stub="zero")
    for path, names in by_file(targets).items():
        data = (folder / path).read_bytes() if keeps_bodies else masked[path].data
        yield path, probed(path, data, dict.fromkeys(names, line))


def writing_results(known: Known) -> str:
    """Code that writes and prints what the grader reads."""
    files = "".join(f"open({path!r}, 'w').write({text!r})\n" for path, text in known.result_files().items())
    return f"{files}print({known.printed!r}, flush=True)\n"
