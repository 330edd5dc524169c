"""Writes tasks as folders in the form of Harbor, and prints what has no form there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.authoring.exporting.harbor.folder import NotExportedError, folder_files, left_behind
from pytest_super.authoring.importing.store import changes_of, write_files
from pytest_super.errors import SuperError
from pytest_super.words import counted, printable_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_super.tasks.task import Task

RECORD = "harbor.export.json"


def export_harbor(tasks: Sequence[Task], output: Path, *, base_image: str, force: bool) -> int:
    """Returns the exit status, 1 if a task has no form in Harbor. Raises SuperError if no file is written."""
    files: dict[str, str | Path] = {}
    left_out = 0
    for task in tasks:
        place = f"{task.place}: {task.id}"
        try:
            made = folder_files(task, base_image)
        except NotExportedError as error:
            left_out += 1
            print(printable_line(f"{place}: left out: {error}"))
            continue
        files |= {f"{task.id}/{name}": content for name, content in made.items()}
        if fields := left_behind(task):
            print(printable_line(f"{place}: Harbor has no {' and no '.join(fields)}"))
    if not files:
        raise SuperError(f"none of {counted(len(tasks), 'task')} has a form in Harbor")
    written = write_files(output, files, {"format": "harbor"}, record=RECORD, force=force)
    lost = f"; {left_out} left out" if left_out else ""
    print(f"{counted(len(tasks) - left_out, 'task')} in {output} (files: {changes_of(written)}){lost}")
    return 1 if left_out else 0
