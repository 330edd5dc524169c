"""What several of the commands do: find and load task files, and write what was found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError, TaskFileError

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.tasks.task import Task


def task_files(path: Path) -> list[Path]:
    """The task files in a folder and below it, or the one file. Raises SuperError when there are none."""
    from pytest_super.tasks.task import TASK_SUFFIX

    if path.is_file():
        return [path]
    found = sorted(path.rglob(f"*{TASK_SUFFIX}"))
    if not found:
        raise SuperError(f"{path}: no *{TASK_SUFFIX} file is there")
    return found


def load_all(files: list[Path]) -> tuple[list[Task], list[str]]:
    """The tasks of the files that are right, and the errors of the others."""
    from pytest_super.session.collection import refuse_known_ids
    from pytest_super.tasks.loading import load_tasks

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


def write_json(path: Path, data: object) -> None:
    """Raises SuperError."""
    try:
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from None
