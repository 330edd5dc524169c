"""A plugin of the runs that try something: its agents repeat a part of a stored trial, then gold goes on."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.gold import GoldAgent, first_failure, run_to_end
from pytest_super.agents.gold_functions import writing
from pytest_super.agents.registry import AgentSettings, make_gold
from pytest_super.agents.replay import ReplayAgent, read_steps
from pytest_super.authoring.tries import try_of
from pytest_super.errors import SuperError
from pytest_super.grading.collected import changed_paths, files_below_workdir
from pytest_super.session.masked_code import prepared_code
from pytest_super.tasks.paper_item import PaperItem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task
    from pytest_super.trial.trial import Agent, Trial

# How long the files of a state are looked at, which is no compute time of the trial.
LOOK_SECONDS = 2.0


def replayable(trajectory: Path) -> list[Step]:
    """The steps that are replayed, without submissions. Raises SuperError for one that cannot be."""
    return [step for step in ReplayAgent(read_steps(trajectory)).steps if step.action.type != "submit"]


class StateAgent:
    """Repeats some steps, then gold goes on. Writes what the last of them changed into a file."""

    def __init__(self, steps: Sequence[Step], gold: GoldAgent, changed: Path) -> None:
        self.steps = steps
        self.gold = gold
        self.changed = changed

    def run(self, trial: Trial) -> None:
        # One agent for all steps, which knows the open file of SWE-agent's tools.
        replaying = ReplayAgent(())
        replaying.steps = list(self.steps[:-1])
        replaying.run(trial)
        before = files_below_workdir(trial.kernel, LOOK_SECONDS) if self.steps else None
        replaying.steps = list(self.steps[-1:])
        replaying.run(trial)
        after = files_below_workdir(trial.kernel, LOOK_SECONDS) if self.steps else None
        if before is not None and after is not None:
            self.changed.write_text(json.dumps(list(changed_paths(before, after))), encoding="utf-8")
        if trial.kernel.is_running:
            trial.interrupt()
        self.gold.run(trial)


class BodiesAgent:
    """Writes the original files with some of the bodies that were collected."""

    def __init__(self, task: PaperItem, collected: Path, bodies: Sequence[str]) -> None:
        self.task = task
        self.collected = collected
        self.bodies = bodies

    def run(self, trial: Trial) -> None:
        code = prepared_code(self.task)
        assert code is not None
        files = code.with_bodies(self.collected, self.bodies)
        steps = [run_to_end(trial, writing(PurePosixPath(path), data)) for path, data in files.items()]
        if why := first_failure(steps):
            raise SuperError(why)
        trial.submit(None)


def pytest_super_make_agent(task: Task, epoch: int) -> Agent:
    if (probe := try_of(task.id, epoch)) is None:
        pytest.skip("less is tried of this task")
    if isinstance(task, PaperItem):
        return BodiesAgent(task, Path(probe["collected"]), probe["bodies"])
    return state_agent(task, probe)


def state_agent(task: Task, probe: Mapping[str, Any]) -> StateAgent:
    gold = make_gold(task, AgentSettings())
    assert isinstance(gold, GoldAgent)
    steps = replayable(Path(probe["trajectory"]))[: probe["steps"]]
    return StateAgent(steps, gold.going_on(probe["cell"]), Path(probe["changed"]))
