"""What a cheater knows of a task, and how it writes the files that the grader takes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pytest_super.agents.gold_functions import writing
from pytest_super.errors import SuperError
from pytest_super.functions.masking import masked_files
from pytest_super.functions.source import by_file
from pytest_super.functions.splicing import probed
from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.self_report import expected
from pytest_super.sources import fetch
from pytest_super.store.step_values import error_of
from pytest_super.tasks.grade import EVERYTHING, Check, GradedCommand
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Task
from pytest_super.trial.trial import Trial

SCRIPT = re.compile(r"[\w./-]+\.py\b")


class CannotTry(SuperError):
    """The cheat has nothing to act with on this task; the text says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """All that is expected of the agent, and what the gold solution printed, but nothing hidden besides."""

    task: Task
    outputs: Sequence[str] = ()
    """What the cells of gold printed, each."""
    printed: str = ""
    """What the commands of the grader printed about gold's work."""

    def shown(self) -> list[str]:
        """The outputs of gold. Raises CannotTry for a task without a solution."""
        if not self.outputs:
            raise CannotTry("the task has no solution, so nobody knows what hits its landmarks")
        return list(self.outputs)

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
            if not check.has_value:
                continue
            if check.json_ is not None:
                place = documents.setdefault(check.json_.file, {})
                documents[check.json_.file] = with_value(place, check.json_.pointer, wanted(check))
            elif check.number is not None:
                texts[check.number] = str(wanted(check))
        return {**texts, **{path: json.dumps(document) for path, document in documents.items()}}

    def own_files(self) -> Iterator[str]:
        """The Python files that the grader takes from the agent: those named, and its scripts in folders."""
        grade = self.task.grade
        assert grade is not None
        collected = [""] if grade.collect == EVERYTHING else list(grade.collect or [""])
        yield from (path for path in collected if path.endswith(".py"))
        folders = [PurePosixPath(path) for path in collected if not path.endswith(".py")]
        for script in SCRIPT.findall(" ".join(command.command for command in grade.commands)):
            is_collected = any(PurePosixPath(script).is_relative_to(one) for one in folders)
            if is_collected and script not in grade.files:
                yield script

    def checks(self) -> Iterator[Check]:
        assert self.task.grade is not None
        own = [one for _, one in self.task.grade.steps()]
        commands: Sequence[GradedCommand] = self.task.experiments or own
        return (check for command in commands for check in command.checks)


def wanted(check: Check) -> Any:
    """A value without `expected` is itself the score."""
    return expected(check) if check.has_expected or check.interval is not None else 1


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


def put(trial: Trial, known: Known, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files in the repository's folder. Raises CannotTry without any, or if one cannot be written."""
    written = [trial.execute(writing(known.base / path, data)) for path, data in files]
    if not written:
        raise CannotTry("there is no file to write that the grader takes")
    if failed := [step for step in written if step.outcome != Outcome.OK]:
        raise CannotTry(f"a file cannot be written: {error_of(failed[0])}")


def put_code(trial: Trial, known: Known, code: str) -> None:
    """Put code into each file that the grader collects: its content, or the body of each function."""
    # One line, which fits into a body.
    put(trial, known, files_with(known, f"exec({code!r}, {{}})"))


def files_with(known: Known, line: str, *, keeps_bodies: bool = False) -> Iterator[tuple[str, bytes]]:
    """The files that the grader collects, with a line of code first; of a paper in each masked body."""
    task = known.task
    if not isinstance(task, PaperItem):
        yield from ((path, line.encode()) for path in known.own_files())
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
    return (
        "import pathlib\n"
        f"for path, text in {known.result_files()!r}.items():\n"
        "    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)\n"
        "    pathlib.Path(path).write_text(text)\n"
        f"print({known.printed!r}, flush=True)\n"
    )


def run_shell(trial: Trial, known: Known, code: str) -> None:
    """Run Bash in which SCRIPT is the entrypoint, NAME its file, and SECONDS how long it must run."""
    entrypoint = known.task.entrypoint
    assert entrypoint is not None
    script = known.base / PurePosixPath(entrypoint.path)
    values = {"SCRIPT": script, "NAME": script.name, "SECONDS": entrypoint.min_seconds + 1}
    for name, value in values.items():
        code = code.replace(name, shlex.quote(str(value)))
    trial.execute(f"%%bash\n{code}\n")
