"""The agent `replay`: repeats the steps of a stored trajectory in a fresh kernel."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from pytest_super.agents.react import agent as react
from pytest_super.agents.react.format import ACTION_TYPES, BEFORE, WITHOUT_CONTENT
from pytest_super.agents.swe.commands import ARGUMENTS, is_edit
from pytest_super.agents.swe.tools import Editor
from pytest_super.errors import SuperError
from pytest_super.store.json_lines import UNREADABLE, damage
from pytest_super.store.published import read_history
from pytest_super.store.results import TRIAL_FOLDER
from pytest_super.store.step_values import edit_of, submission_of
from pytest_super.store.trajectory import PROGRAM, TOLD, Action, Step, read_trajectory
from pytest_super.trial.observation import STILL_RUNNING
from pytest_super.trial.trial import Trial

# The union of all agents' actions: a trajectory does not say which agent made it.
KNOWN = {*ACTION_TYPES, *ARGUMENTS, "read"}
# The steps of a program cannot be replayed: it would make new decisions, and it can need its model.
PROGRAM_STEPS = (PROGRAM, "read_answer")


class ReplayAgent:
    """Repeats the agent's own steps; a rejected answer is rejected again with the stored text.

    Waits for a cell that takes longer than in the stored trial. Repeats only the last attempt, because each
    attempt started with a fresh kernel. Raises SuperError for a step that cannot be replayed.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        last = max((step.attempt for step in steps), default=1)
        own = [step for step in steps if step.origin == "agent" and step.attempt == last]
        # The actions of a program on the host are steps of their own, so its own step is left out.
        self.steps = [step for step in own if step.action.type not in TOLD]
        self.editor = Editor()
        for step in self.steps:
            check_replayable(step)

    def run(self, trial: Trial) -> None:
        for step in self.steps:
            # The published runs end in this way for lack of tokens or time.
            if step.action.type == "exception":
                return
            if was_rejected(step):
                trial.reject(step.observation, step.action, step.thought)
            else:
                self.repeat(trial, step)

    def repeat(self, trial: Trial, step: Step) -> None:
        """Repeat the step. Waits for its cell to end, unless the stored step timed out."""
        if trial.kernel.is_running and step.action.type not in (*WITHOUT_CONTENT, "submit"):
            # The published runners interrupted a running cell before any other action.
            trial.interrupt()
        taken = self.take(trial, step)
        while taken.is_running and not step.is_running:
            taken = trial.continue_wait()

    def take(self, trial: Trial, step: Step) -> Step:
        action, thought = step.action, step.thought
        if action.type == "submit":
            return trial.submit(submission_of(action.content), thought)
        if is_swe_command(action):
            return trial.use(action, self.editor.tool(action), thought)
        if action.type == "edit" and (change := edit_of(action.content)):
            return trial.edit(**change, thought=thought)
        if action.type == "read":
            return trial.read(action.content, thought)
        return react.act(trial, action, thought)


def check_replayable(step: Step) -> None:
    type = step.action.type
    if type in PROGRAM_STEPS and step.observation != STILL_RUNNING:
        why = f"it is a whole program (`{type}`), whose actions were not recorded"
        raise SuperError(f"step {step.number} cannot be replayed: {why}")
    if not (type in KNOWN or type == "exception" or was_rejected(step)):
        raise SuperError(f"step {step.number} cannot be replayed: only its agent knows the action `{type}`")


def was_rejected(step: Step) -> bool:
    """Whether nothing was done, because the answer had no action or a cell was still running."""
    return step.outcome == "error" and (step.action.type not in KNOWN or step.observation == STILL_RUNNING)


def is_swe_command(action: Action) -> bool:
    """Whether the action is a command of swe-agent. Its `edit` replaces lines by number."""
    if action.type == "edit":
        return BEFORE not in action.content and is_edit(action.content.partition("\n")[0])
    return action.type in ARGUMENTS and action.type != "submit"


def stored_steps(path: Path, task_id: str, epoch: int = 1) -> list[Step] | None:
    """The steps of a stored trial. `path` is a trajectory's file, a trial's folder or a run's folder.

    In a run of ours it is the last rerun of this epoch, or else of the first epoch. None if the run has no
    trial of the task. Raises SuperError if there is no trajectory at all, or the file is not one.
    """
    if path.is_file():
        return read_steps(path)
    found = next(trajectory_files(path, task_id, epoch), None)
    if found is not None:
        return read_steps(found)
    if any(path.glob("*/history.ipynb")) or any(path.glob("trials/*/*/trajectory.jsonl")):
        return None
    raise SuperError(f"{path} has no trajectory: name a trajectory's file, its folder, or a run's folder")


def trajectory_files(folder: Path, task_id: str, epoch: int) -> Iterator[Path]:
    files = [folder / "history.ipynb", folder / "trajectory.jsonl", folder / task_id / "history.ipynb"]
    trials = [path for path in (folder / "trials" / task_id).glob("*") if TRIAL_FOLDER.fullmatch(path.name)]
    trials.sort(key=partial(rerun_order, wanted=epoch))
    files += [trial / "trajectory.jsonl" for trial in trials]
    yield from (file for file in files if file.is_file())


def rerun_order(trial: Path, wanted: int) -> tuple[bool, int, int]:
    """Sort key: the wanted epoch first, then the others in order; in each the last rerun first."""
    epoch, rerun = map(int, trial.name.split("."))
    return epoch != wanted, epoch, -rerun


def read_steps(path: Path) -> list[Step]:
    if path.suffix == ".ipynb":
        return read_history(path).steps
    try:
        steps = read_trajectory(path)
    except UNREADABLE as error:
        raise SuperError(f"{path} is not a trajectory: {damage(error)}") from None
    if not steps:
        raise SuperError(f"{path} is not a trajectory: it has no steps")
    return steps
