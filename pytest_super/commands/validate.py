"""`pytest-super validate`: check task files without running an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.commands.task_files import add_paths, valid_tasks
from pytest_super.errors import TaskFileError
from pytest_super.words import printable, printable_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from pytest_super.tasks.task import Task

HELP = "check task files; no agent is run"


def add_arguments(parser: ArgumentParser) -> None:
    add_paths(parser)


def run(arguments: Namespace) -> int:
    try:
        tasks = valid_tasks(arguments.paths)
    except TaskFileError as error:
        print(printable(str(error)))
        return 1
    for task in tasks:
        for note in notes(task):
            print(printable_line(f"{task.place}: note: {note}"))
    print(f"{len(tasks)} tasks in {len({task._path for task in tasks})} files are valid")
    return 0


def notes(task: Task) -> Iterator[str]:
    """What is valid and easily overlooked: the empty lists and mappings that are compared."""
    # Not at the top, for the commands that are only listed.
    from pytest_super.metrics.leaves import is_empty, leaves, shown

    for place, value in compared_values(task):
        for inner, leaf in leaves(value):
            if is_empty(leaf):
                kind = "mapping" if isinstance(leaf, dict) else "list"
                yield f"`{shown((*place, *inner))}` is an empty {kind}, which only an empty {kind} equals"


def compared_values(task: Task) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The values that submissions and results are compared with, with their places in the task."""
    yield ("answer",), task.answer
    for index, check in enumerate(task.grade.result if task.grade else ()):
        yield ("grade", "result", index, "expected"), check.expected
    for number, experiment in enumerate(task.experiments):
        for index, check in enumerate(experiment.result):
            yield ("experiments", number, "result", index, "expected"), check.expected
