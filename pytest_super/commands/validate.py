"""`pytest-super validate`: check task files without running an agent."""

from argparse import ArgumentParser, Namespace

from pytest_super.commands.task_files import add_paths, valid_tasks
from pytest_super.errors import TaskFileError, printable

HELP = "check task files; no agent is run"


def add_arguments(parser: ArgumentParser) -> None:
    add_paths(parser)


def run(arguments: Namespace) -> int:
    try:
        tasks = valid_tasks(arguments.paths)
    except TaskFileError as error:
        print(printable(str(error)))
        return 1
    print(f"{len(tasks)} tasks in {len({task._path for task in tasks})} files are valid")
    return 0
