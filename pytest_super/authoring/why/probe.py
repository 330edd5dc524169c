"""A plugin of the runs that try something: its agents repeat a part of a stored trial, then gold goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.agents.gold import GoldAgent, first_failure, run_to_end
from pytest_super.agents.gold_functions import writing
from pytest_super.agents.registry import AgentSettings, make_gold
from pytest_super.agents.replay import ReplayAgent, read_steps
from pytest_super.authoring.tries import try_of
from pytest_super.errors import SuperError
from pytest_super.grading.masked_code import prepared_code
from pytest_super.store.trajectory import Step
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Task
from pytest_super.trial.trial import Trial

if TYPE_CHECKING:
    from pytest_super.trial.agent_run import Agent


def replayable(trajectory: Path) -> list[Step]:
    """The steps that are replayed, without submissions. Raises SuperError for one that cannot be."""
    return [step for step in ReplayAgent(read_steps(trajectory)).steps if step.action.type != "submit"]


class StateAgent:
    """Repeats some steps, then gold goes on."""

    def __init__(self, steps: Sequence[Step], gold: GoldAgent) -> None:
        self.replaying = ReplayAgent(steps)
        self.gold = gold

    def run(self, trial: Trial) -> None:
        self.replaying.run(trial)
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
    return StateAgent(steps, gold.going_on(probe["cell"]))
