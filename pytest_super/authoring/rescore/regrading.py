"""Runs the graders of stored trials again, on the files that were collected."""

import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_super.authoring.rescore.trials import StoredTrial
from pytest_super.errors import SuperError
from pytest_super.grading.collected import paths_of, read_collected
from pytest_super.grading.grader import Grader
from pytest_super.metrics.evidence import GradedValue
from pytest_super.session.trial.grading import (
    COLLECTED,
    LOG,
    SPLICED,
    WHOLE_FILE_LOG,
    after_prefix,
    for_grader,
)
from pytest_super.session.trial.item import ReadyKernel
from pytest_super.tasks.grade import SAME, Grade
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Regraded:
    """What the grader of a task says of a stored trial now."""

    values: list[GradedValue]
    whole_file: list[GradedValue] | None
    """As in `TrialGrade`."""
    logs: dict[str, bytes]
    """What the commands printed, by the name of the file in the trial's folder."""


def grade_again(trial: StoredTrial, task: Task, start: Callable[[Task], ReadyKernel]) -> Regraded | None:
    """Run the task's grader in a new sandbox; None without one. Raises SuperError if it cannot run."""
    grade, old = task.grade, trial.result
    if grade is None or not old.graded:
        return None
    if grade.where == SAME:
        raise SuperError("its grader ran in the agent's sandbox, which is gone")
    logs: dict[str, bytes] = {}

    def again(archive: str, log: str, stored: list[dict[str, Any]]) -> list[GradedValue]:
        if not (path := trial.path.with_name(archive)).exists():
            # Without an archive nothing could be collected, and the stored values say why.
            return [GradedValue(**value) for value in stored]
        values, logs[log] = grade_archive(path, task, grade, old.changed_elsewhere, start)
        return values

    values = again(SPLICED if isinstance(task, PaperItem) else COLLECTED, LOG, old.graded)
    whole_file = None if old.whole_file is None else again(COLLECTED, WHOLE_FILE_LOG, old.whole_file)
    return Regraded(values=values, whole_file=whole_file, logs=logs)


def grade_archive(
    archive: Path, task: Task, grade: Grade, elsewhere: list[str] | None, start: Callable[[Task], ReadyKernel]
) -> tuple[list[GradedValue], bytes]:
    """The values for the files in an archive, and what the commands printed. Raises SuperError."""
    try:
        collected = read_collected(archive)
    except (OSError, tarfile.TarError) as error:
        raise SuperError(f"{archive} cannot be read: {error}") from None
    ready = start(for_grader(task, grade))
    base = ready.repository or ""
    with after_prefix(ready) as kernel, tempfile.TemporaryDirectory() as folder:
        # What the agent changed elsewhere was not collected.
        for path in paths_of(grade, base):
            if missing := [name for name in elsewhere or () if PurePosixPath(name).is_relative_to(path)]:
                raise SuperError(
                    f"its grader collects {missing[0]} now, which was not collected from the agent"
                )
        log = Path(folder) / "log"
        grader = Grader(grade, task_folder=task.folder, base=base, log=log)
        return grader.grade(kernel, collected), log.read_bytes() if log.exists() else b""
