"""Runs the graders of stored trials again, on the files that were collected."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.grading.collected import read_collected
from pytest_super.grading.grader import Grader
from pytest_super.session.grading import COLLECTED, after_prefix, for_grader
from pytest_super.tasks.grade import SAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.authoring.rescore.trials import StoredTrial
    from pytest_super.metrics.evidence import GradedValue
    from pytest_super.session.start_ahead import ReadyKernel
    from pytest_super.tasks.task import Task


def grade_again(
    trial: StoredTrial, task: Task, start: Callable[[Task], ReadyKernel]
) -> list[GradedValue] | None:
    """The values of the task's grader, in a new sandbox. None if there is nothing to grade.

    Raises SuperError if the grader cannot run.
    """
    grade = task.grade
    if grade is None or not trial.result.graded:
        return None
    if grade.where == SAME:
        raise SuperError("its grader ran in the agent's sandbox, which is gone")
    archive = trial.path.with_name(COLLECTED)
    if not archive.exists():
        # Without an archive nothing could be collected, and the stored values say why.
        return None
    try:
        collected = read_collected(archive)
    except (OSError, tarfile.TarError) as error:
        raise SuperError(f"{archive} cannot be read: {error}") from None
    ready = start(for_grader(task, grade))
    with after_prefix(ready) as kernel, tempfile.TemporaryDirectory() as folder:
        log, base = Path(folder) / "log", ready.repository or ""
        grader = Grader(grade, task_folder=Path(task._path).parent, base=base, log=log)
        return grader.grade(kernel, collected)
