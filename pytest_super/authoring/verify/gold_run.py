"""Runs gold and reads such a run; as its plugin, grades files again that only end the program."""

import json
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_super.agents.gold import GOLD
from pytest_super.authoring.tries import DONE, await_pytest
from pytest_super.errors import SuperError
from pytest_super.grading.collected import add_file, contents, inside, placed, read_collected
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.session.trial.grading import COLLECTED, graded_apart, grader_of, second_kernel
from pytest_super.session.trial.item import TaskItem
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors
from pytest_super.store.results import TrialResult, read_results
from pytest_super.store.run_folder import last_reruns
from pytest_super.store.step_values import submission_of
from pytest_super.store.trajectory import Step, read_trajectory
from pytest_super.tasks.grade import FRESH

PLUGIN = "pytest_super.authoring.verify.gold_run"
MARK = ".graded-by"
# Names the program that runs it, and ends it.
EXIT = f"import os, sys\ntry:\n open({MARK!r}, 'w').write(sys.argv[0])\nfinally:\n os._exit(0)\n".encode()
MOST_NAME = 4096
CHECK_FILE = "exit_check.json"
"""In the trial's folder: `graded`, the mean score of the grader's values, and that `program`."""


@dataclass(frozen=True, kw_only=True)
class GoldTrial:
    """One trial of a task's own solution."""

    result: TrialResult
    prefix: list[Step]
    """The pre-executed steps."""
    submission: Any
    """None if nothing was submitted; since None can be submitted, see `result.submitted`."""
    exits_pass: bool = False
    """Whether its grader also passes if the collected files only end the program."""
    program: str = ""
    """The program in whose process its grader runs them."""


def run_gold(paths: Sequence[Path], options: Sequence[str], directory: Path) -> Path:
    """The folder of the run under `directory`. Raises SuperError unless it is the only one and tried all."""
    before = runs_in(directory)
    # Without the last line: "6 passed" before the findings would say that all is well.
    arguments = ["-qq", f"-p{PLUGIN}", f"--super-agent={GOLD}", *options, *map(str, paths)]
    status = await_pytest(arguments, directory)
    made = runs_in(directory) - before
    if status not in DONE or not made:
        where = f", with results in {', '.join(map(str, made))}" if made else ""
        raise SuperError(f"pytest ended with status {status} before all tasks were run{where}")
    if len(made) > 1:
        raise SuperError(f"several runs began under {directory}: give each its own folder with --dir")
    return made.pop()


def runs_in(directory: Path) -> set[Path]:
    # `runs/latest` is a link to one of the others.
    return {file.parent for file in directory.glob("runs/*/run.json") if not file.parent.is_symlink()}


def read_gold(run: Path) -> dict[str, list[GoldTrial]]:
    """The last rerun of each epoch, by task id. Raises SuperError unless `run` is a run of gold."""
    trials: dict[str, list[GoldTrial]] = {}
    for result in sorted(last_reruns(read_results(run)), key=lambda result: result.epoch):
        if result.agent != GOLD:
            raise SuperError(f"{run} is a run of the agent {result.agent}: only runs of {GOLD} can be judged")
        trials.setdefault(result.id, []).append(read_trial(run, result))
    return trials


def read_trial(run: Path, result: TrialResult) -> GoldTrial:
    steps = read_trajectory(run / result.folder / "trajectory.jsonl")
    given = [step for step in steps if step.action.type == "submit" and step.outcome == "ok"]
    return GoldTrial(
        result=result,
        prefix=[step for step in steps if step.origin == "pre_execute"],
        submission=submission_of(given[-1].action.content) if given else None,
        **exit_check(run / result.folder),
    )


def pytest_super_trial_finished(item: TaskItem, result: TrialResult) -> None:
    grade = item.task.grade
    if grade is None or grade.where != FRESH or not result.solved:
        return
    folder = item.open_folder().path
    exiting = folder / "exiting.tar"
    with disk_errors(folder):
        with tarfile.open(folder / COLLECTED) as old, tarfile.open(exiting, "w") as new:
            for entry in old:
                # Not before the file's own lines: `from __future__` can only be the first of all.
                data = EXIT if entry.name.endswith(".py") else contents(old, entry)
                add_file(new, entry.name, data, entry.mode & 0o100 > 0)
        collected = read_collected(exiting)
    log, program = folder / "exiting.log", b""
    with second_kernel(item, item.task, grade) as kernel:
        values = grader_of(item, item.task, grade, log).grade(kernel, collected)
        with suppress(OSError, SandboxLostError):
            program = kernel.files.read(inside(kernel, placed(MARK, item.provided or "")), MOST_NAME)
        values += graded_apart(item, grade, kernel, log)
    found = {"graded": fmean(value.score for value in values), "program": program.decode(errors="replace")}
    with disk_errors(folder):
        write_atomically(folder / CHECK_FILE, json.dumps(found))


def exit_check(folder: Path) -> dict[str, Any]:
    """How the grader of a trial took such files, as fields. `folder` is the trial's."""
    try:
        found = json.loads((folder / CHECK_FILE).read_text())
    except FileNotFoundError:
        return {}
    return {"exits_pass": found["graded"] == 1.0, "program": found.get("program", "")}
