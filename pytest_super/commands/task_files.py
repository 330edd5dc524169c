"""Finds the task files below paths, and loads all of them."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Collection, Iterable
from pathlib import Path

from pytest_super.errors import SuperError, TaskFileError
from pytest_super.tasks.task import Task

TASKS = Path("tasks")
"""Where commands look for the tasks of a stored run."""


def add_paths(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a task file or a folder of task files"
    )


def add_tasks(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tasks",
        action="append",
        type=Path,
        metavar="PATH",
        help=f"the task files, or folders of them (default: {TASKS})",
    )


def valid_tasks(paths: Iterable[Path]) -> list[Task]:
    """The tasks of files, and of all below folders. Raises SuperError without files, and TaskFileError."""
    # Not at the top, for the commands that are only listed.
    from pytest_super.tasks.loading import load_tasks, refuse_known_ids

    tasks: list[Task] = []
    errors: list[str] = []
    places: dict[str, str] = {}
    for file in [file for path in paths for file in task_files(path)]:
        try:
            loaded = load_tasks(file)
            refuse_known_ids(loaded, places, str(file))
            tasks += loaded
        except TaskFileError as error:
            errors.append(str(error))
    if errors:
        raise TaskFileError("\n".join(errors))
    return tasks


def known_tasks(paths: Iterable[Path], ids: Collection[str]) -> dict[str, Task]:
    """The tasks by id, with the items of papers among `ids`. Raises as `valid_tasks` does."""
    from pytest_super.tasks.combinations import items_named

    known = {task.id: task for task in valid_tasks(paths)}
    return {**known, **items_named(known.values(), ids)}


def task_files(path: Path) -> list[Path]:
    """The path itself if it is a file, else the task files below it. Raises SuperError if there are none."""
    from pytest_super.tasks.task import TASK_SUFFIX

    found = sorted(path.rglob(f"*{TASK_SUFFIX}")) if path.is_dir() else [path]
    if not found:
        raise SuperError(f"{path}: there is no *{TASK_SUFFIX} file")
    return found
