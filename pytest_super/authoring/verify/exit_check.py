"""A plugin for runs of gold: does a grader pass if the collected Python files only end the program?

It grades each solved trial again, with nothing but `os._exit(0)` in these files.
"""

from __future__ import annotations

import json
import tarfile
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.grading.collected import add_file, contents, read_collected
from pytest_super.session.grading import COLLECTED, grade_collected
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors
from pytest_super.tasks.grade import FRESH

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.session.item import TaskItem
    from pytest_super.store.results import TrialResult

EXIT = b"import os; os._exit(0)\n"
FILE = "exit_check.json"
"""In the trial's folder: `graded`, the mean score of the grader's values."""


def pytest_super_trial_finished(item: TaskItem, result: TrialResult) -> None:
    grade = item.task.grade
    if grade is None or grade.where != FRESH or not result.solved:
        return
    folder = item.open_folder().path
    exiting = folder / "exiting.tar"
    with disk_errors(folder):
        write_exiting(folder / COLLECTED, exiting)
        collected = read_collected(exiting)
    values = grade_collected(item, grade, collected, folder / "exiting.log")
    with disk_errors(folder):
        write_atomically(folder / FILE, json.dumps({"graded": fmean(value.score for value in values)}))


def write_exiting(archive: Path, to: Path) -> None:
    """Copy the archive, with EXIT in place of each Python file. Raises OSError."""
    with tarfile.open(archive) as old, tarfile.open(to, "w") as new:
        for entry in old:
            # Not before the file's own lines: `from __future__` can only be the first of all.
            data = EXIT if entry.name.endswith(".py") else contents(old, entry)
            add_file(new, entry.name, data, entry.mode & 0o100 > 0)


def exits_pass(folder: Path) -> bool:
    """Whether the grader of a trial passed with such files. `folder` is the trial's."""
    try:
        graded: float = json.loads((folder / FILE).read_text())["graded"]
    except FileNotFoundError:
        return False
    return graded == 1.0
