"""Finds the task files below paths, and loads all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.errors import SuperError, TaskFileError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pytest_super.tasks.task import Task


def valid_tasks(paths: Iterable[Path]) -> list[Task]:
    """The tasks of all task files at and below `paths`.

    Raises SuperError for a path without task files, and TaskFileError with the errors of all files.
    """
    tasks, errors = load_all(find_task_files(paths))
    if errors:
        raise TaskFileError("\n".join(errors))
    return tasks


def find_task_files(paths: Iterable[Path]) -> list[Path]:
    """Each path that is a file, and the task files below each that is a folder. Raises SuperError."""
    return [file for path in paths for file in ([path] if path.is_file() else task_files_below(path))]


def task_files_below(folder: Path) -> list[Path]:
    """Raises SuperError when there are none."""
    from pytest_super.tasks.task import TASK_SUFFIX

    found = sorted(folder.rglob(f"*{TASK_SUFFIX}"))
    if not found:
        raise SuperError(f"{folder}: there is no *{TASK_SUFFIX} file")
    return found


def load_all(files: Iterable[Path]) -> tuple[list[Task], list[str]]:
    """The tasks of the valid files, and one text for each other file, with all its errors."""
    from pytest_super.tasks.loading import load_tasks, refuse_known_ids

    tasks: list[Task] = []
    errors: list[str] = []
    places: dict[str, str] = {}
    for file in files:
        try:
            loaded = load_tasks(file)
            refuse_known_ids(loaded, places, str(file))
        except TaskFileError as error:
            errors.append(str(error))
        else:
            tasks += loaded
    return tasks, errors
