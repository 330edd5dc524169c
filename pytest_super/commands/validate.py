"""`pytest-super validate`: check task files without running an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

HELP = "check task files; no agent is run"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a task file or a folder of task files"
    )


def run(arguments: Namespace) -> int:
    from pytest_super.commands.task_files import find_task_files, load_all

    files = find_task_files(arguments.paths)
    tasks, errors = load_all(files)
    for error in errors:
        print(error)
    if errors:
        return 1
    print(f"{len(tasks)} tasks in {len(files)} files are valid")
    return 0
