"""The agent `replay`: does what the agent of a stored trajectory did, against a fresh kernel."""

from __future__ import annotations

import ast
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_super.agents.react import agent as react
from pytest_super.agents.react.format import ACTION_TYPES, BEFORE, WITHOUT_CONTENT
from pytest_super.agents.swe.commands import ARGUMENTS, is_edit
from pytest_super.agents.swe.tools import Editor
from pytest_super.errors import SuperError
from pytest_super.kernel.cell import Outcome
from pytest_super.store.published import read_history
from pytest_super.store.results import read_trajectory
from pytest_super.store.trajectory import PROGRAM, PROGRAM_BESIDE
from pytest_super.trial.observation import STILL_RUNNING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_super.store.trajectory import Action, Step
    from pytest_super.trial.trial import Trial

KNOWN = {*ACTION_TYPES, *ARGUMENTS}
# Running a program once more would be no replay, and it may want its model.
OF_PROGRAM = (PROGRAM, "read_answer")
# A trial's folder is named by epoch and rerun.
TRIAL_FOLDER = re.compile(r"\d+\.\d+")


class ReplayAgent:
    """Takes the agent's own steps again; what was answered to an answer without an action is answered again.

    Waits on for a cell that takes longer than it did. Of a trial with several attempts it takes the last,
    since each had a fresh kernel. Raises SuperError for a step that it cannot take.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        last = max((step.attempt for step in steps), default=1)
        own = [step for step in steps if step.origin == "agent" and step.attempt == last]
        self.steps = [step for step in own if step.action.type != PROGRAM_BESIDE]
        self.editor = Editor()
        for step in self.steps:
            check_replayable(step)

    def run(self, trial: Trial) -> None:
        for step in self.steps:
            if step.action.type == "exception":
                return
            if was_refused(step):
                trial.reject(step.observation, step.action, step.thought)
            else:
                self.repeat(trial, step)

    def repeat(self, trial: Trial, step: Step) -> None:
        """Take the step, and wait until its cell ends if it did."""
        if trial.kernel.is_running and step.action.type not in (*WITHOUT_CONTENT, "submit"):
            # The published runners stopped a cell that still ran, when they were to do something else.
            trial.interrupt()
        taken = self.take(trial, step)
        while taken.outcome == Outcome.TIMED_OUT and step.outcome != Outcome.TIMED_OUT:
            taken = trial.continue_wait()

    def take(self, trial: Trial, step: Step) -> Step:
        action, thought = step.action, step.thought
        if action.type == "submit":
            return trial.submit(submission_of(action.content), thought)
        if is_of_editor(action):
            return trial.use(action, self.editor.tool(action), thought)
        if action.type == "edit" and (change := stored_edit(action.content)):
            return trial.edit(**change, thought=thought)
        return react.act(trial, action, thought)


def check_replayable(step: Step) -> None:
    type = step.action.type
    if type in OF_PROGRAM and step.observation != STILL_RUNNING:
        why = f"it is a whole program (`{type}`), and what that did is not known"
        raise SuperError(f"step {step.number} cannot be replayed: {why}")
    if not (type in KNOWN or type == "exception" or was_refused(step)):
        raise SuperError(f"step {step.number} cannot be replayed: only its agent knows the action `{type}`")


def was_refused(step: Step) -> bool:
    """Whether nothing was done: what was answered was no action, or a cell was in its way."""
    return step.outcome == "error" and (step.action.type not in KNOWN or step.observation == STILL_RUNNING)


def is_of_editor(action: Action) -> bool:
    """Whether it is a command of swe-agent, whose edit replaces lines of the open file by their numbers."""
    if action.type == "edit":
        return BEFORE not in action.content and is_edit(action.content.partition("\n")[0])
    return action.type in ARGUMENTS and action.type != "submit"


def stored_edit(content: str) -> dict[str, str] | None:
    """Path and both texts, where an edit is stored as Trial.edit does."""
    try:
        change = json.loads(content)
    except (ValueError, RecursionError):
        return None
    is_whole = isinstance(change, dict) and change.keys() == {"path", "before", "after"}
    return change if is_whole else None


def submission_of(content: str) -> Any:
    """The value that was submitted: stored as JSON by us, as Python's text of the value in published runs."""
    text = content.removeprefix("submit ")
    for parse in (json.loads, parse_literal):
        try:
            return parse(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return text


def parse_literal(text: str) -> Any:
    """As ast.literal_eval, and nan and inf are numbers."""
    return ast.literal_eval(Numbers().visit(ast.parse(text.strip(), mode="eval")))


class Numbers(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node


def stored_steps(path: Path, task_id: str, epoch: int = 1) -> list[Step] | None:
    """The steps of a stored trial: of a file, of a trial's folder, or of the task's trial in a run's folder.

    Of a run of ours it is the last rerun of this epoch, else of the first. None when the run has no trial
    of the task. Raises SuperError when there is no trajectory at all, or what is there is none.
    """
    if path.is_file():
        return read_steps(path)
    found = next(trajectory_files(path, task_id, epoch), None)
    if found is not None:
        return read_steps(found)
    if any(path.glob("*/history.ipynb")) or any(path.glob("trials/*/*/trajectory.jsonl")):
        return None
    raise SuperError(f"no trajectory is at {path}: name its file, its folder, or the folder of a run")


def trajectory_files(folder: Path, task_id: str, epoch: int) -> Iterator[Path]:
    places = [folder / "history.ipynb", folder / "trajectory.jsonl", folder / task_id / "history.ipynb"]
    trials = [path for path in (folder / "trials" / task_id).glob("*") if TRIAL_FOLDER.fullmatch(path.name)]
    trials.sort(key=partial(rerun_order, wanted=epoch))
    places += [trial / "trajectory.jsonl" for trial in trials]
    yield from (place for place in places if place.is_file())


def rerun_order(trial: Path, wanted: int) -> tuple[bool, int, int]:
    """The last rerun of the wanted epoch first, then that of the first epoch."""
    epoch, rerun = map(int, trial.name.split("."))
    return epoch != wanted, epoch, -rerun


def read_steps(path: Path) -> list[Step]:
    if path.suffix == ".ipynb":
        return read_history(path).steps
    try:
        steps = read_trajectory(path)
    except (OSError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise SuperError(f"{path} is not a trajectory: {error!r}") from None
    if not steps:
        raise SuperError(f"{path} is not a trajectory: it holds no step")
    return steps
