"""`pytest-super validate`: check task files without running an agent."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any, NamedTuple

from pytest_super.commands.task_files import add_paths, valid_tasks
from pytest_super.errors import TaskFileError
from pytest_super.tasks.task import Task
from pytest_super.words import counted, printable, printable_line

HELP = "check task files; no agent is run"

# What is smaller is 0 but for rounding.
NOISE = 1e-12
add_arguments = add_paths


def run(arguments: Namespace) -> int:
    try:
        tasks = valid_tasks(arguments.paths)
    except TaskFileError as error:
        print(printable(str(error)))
        return 1
    for task in tasks:
        for warning in warnings(task):
            print(printable_line(f"{task.place}: warning: {warning}"))
    files = counted(len({task._path for task in tasks}), "file")
    print(f"{counted(len(tasks), 'task')} in {files}: valid")
    return 0


def warnings(task: Task) -> Iterator[str]:
    """Functions that nothing grades alone, and numbers that are so small that 0 is within the tolerance."""
    # Not at the top, for the commands that are only listed.
    from pytest_super.metrics.leaves import leaves, shown
    from pytest_super.tasks.combinations import function_ids, graded_places

    for position, name in enumerate(function_ids(task)):
        if position not in graded_places(task):
            yield f"no experiment needs the function `{name}`: it is masked only together with others"
    for compared in compared_values(task):
        for inner, leaf in leaves(compared.value):
            # Integers are counts and labels, where the author has chosen a tolerance of 1 or more.
            if isinstance(leaf, float) and NOISE < abs(leaf) <= compared.tolerance:
                place = shown((*compared.place, *inner))
                yield (
                    f"`{place}` is {leaf:g}, and 0 is right as well: `{compared.field}` is "
                    f"{compared.tolerance:g}, so state a smaller one, or ask for the value in another unit"
                )


class Compared(NamedTuple):
    """A value that submissions or results are compared with."""

    place: tuple[str | int, ...]
    value: Any
    field: str
    """Where its absolute tolerance is stated."""
    tolerance: float


def compared_values(task: Task) -> Iterator[Compared]:
    yield Compared(("answer",), task.answer, "tolerance", task.tolerance)
    # Not at the top, as above.
    from pytest_super.tasks.validation import graders

    for holder, command, _ in graders(task):
        for index, check in enumerate(command.result):
            yield Compared((*holder, "result", index, "expected"), check.expected, "abs", check.abs)
