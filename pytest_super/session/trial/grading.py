"""Grades the trial of a task that has a grader, in a second sandbox or in the agent's."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from pytest_super.functions.source import SourceError
from pytest_super.grading.changed_code import ChangedCode, changed_code, originals_in
from pytest_super.grading.collected import (
    Collected,
    CollectionError,
    changed_elsewhere,
    collect,
    files_below_workdir,
    paths_of,
    read_collected,
)
from pytest_super.grading.grader import Grader
from pytest_super.grading.masked_code import Splice
from pytest_super.kernel.client import Kernel
from pytest_super.metrics.evidence import GradedValue
from pytest_super.session.trial.item import ReadyKernel, TaskItem
from pytest_super.session.trial.kernels import first_ready
from pytest_super.tasks.grade import SAME, Grade
from pytest_super.tasks.task import Task

COLLECTED, LOG = "collected.tar", "grading.log"
# Of an item of a paper: what is graded instead of the collected files, and the log of these.
SPLICED, WHOLE_FILE_LOG = "spliced.tar", "whole_file.log"


@dataclass(kw_only=True)
class TrialGrade:
    """The work of the grader on one trial."""

    values: list[GradedValue] = field(default_factory=list)
    changed: list[str] | None = None
    """Files that were changed but not collected; None if that is not known."""
    code: list[ChangedCode] | None = None
    """The Python files that were graded and that the agent has changed; None if that is not known."""
    where: str = ""
    seconds: float = 0.0
    whole_file: list[GradedValue] | None = None
    """The values with the whole files of an item of a paper, as the agent left them; None if the splice is
    alike, and without one."""
    splice: Splice | None = None
    """Of an item of a paper."""


def grade_trial(item: TaskItem, task: Task, grade: Grade, kernel: Kernel) -> TrialGrade:
    """Grade what the agent has left in the sandbox of `kernel`. Raises InfrastructureError."""
    began = monotonic()
    folder = item.open_folder()
    folder.activity.begin("grading")
    grader = grader_of(item, task, grade, folder.path / LOG)
    result = TrialGrade(where=grade.where)
    if grade.where == SAME:
        result.values = grader.grade(kernel, None)
    else:
        try:
            paths = paths_of(grade, item.provided or "")
            collected = graded = collect(kernel, paths, folder.path / COLLECTED)
            if item.paper_code is not None:
                result.splice = item.paper_code.write_spliced(collected.archive, folder.path / SPLICED)
                graded = read_collected(folder.path / SPLICED)
        except (CollectionError, SourceError) as error:
            result.values = grader.failed(str(error))
        else:
            with second_kernel(item, task, grade) as second:
                before = files_below_workdir(second)
                result.changed = changed_elsewhere(collected, before)
                masked = item.paper_code
                originals = masked.originals() if masked else originals_in(second, collected, before)
                result.code = None if originals is None else changed_code(graded.archive, originals)
                result.values = grader.grade(second, graded)
                result.values += graded_apart(item, grade, second, folder.path / LOG)
            if result.splice is not None and not result.splice.is_alike:
                result.whole_file = grade_collected(item, grade, collected, folder.path / WHOLE_FILE_LOG)
    result.seconds = round(monotonic() - began, 3)
    return result


def grade_collected(item: TaskItem, grade: Grade, collected: Collected, log: Path) -> list[GradedValue]:
    """Grade other files as if they had been collected. Raises InfrastructureError."""
    with second_kernel(item, item.task, grade) as kernel:
        values = grader_of(item, item.task, grade, log).grade(kernel, collected)
        return values + graded_apart(item, grade, kernel, log)


def graded_apart(item: TaskItem, grade: Grade, kernel: Kernel, log: Path) -> list[GradedValue]:
    """The values that the grader's `then` yields for what is in `kernel`. Raises InfrastructureError."""
    if grade.then is None:
        return []
    own = log.with_suffix(".then.log")
    try:
        collected = collect(kernel, paths_of(grade.then, item.provided or ""), own.with_suffix(".tar"))
    except CollectionError as error:
        return grader_of(item, item.task, grade.then, own).failed(str(error))
    return grade_collected(item, grade.then, collected, own)


def grader_of(item: TaskItem, task: Task, grade: Grade, log: Path) -> Grader:
    return Grader(grade, task_folder=task.folder, base=item.provided or "", log=log)


def second_kernel(item: TaskItem, task: Task, grade: Grade) -> AbstractContextManager[Kernel]:
    """A kernel in a sandbox that starts as the agent's did, with what the grader requires instead."""
    return after_prefix(first_ready(item, for_grader(task, grade), item.paper_code, for_grader=True))


@contextmanager
def after_prefix(ready: ReadyKernel) -> Iterator[Kernel]:
    """The kernel after the steps of its prefix, as the agent got it. It is closed in the end."""
    try:
        for _ in ready.prefix.steps(ready.kernel):
            pass
        if ready.code is not None:
            ready.code.put(ready.kernel)
        yield ready.kernel
    finally:
        ready.close()


def for_grader(task: Task, grade: Grade) -> Task:
    """The task with the sandbox of its grader."""
    if grade.sandbox is None:
        return task
    stated: dict[str, Any] = {name: getattr(grade.sandbox, name) for name in grade.sandbox.model_fields_set}
    return task.model_copy(update={"sandbox": task.sandbox.model_copy(update=stated)})
