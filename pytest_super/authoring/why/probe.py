"""A plugin of the runs that try states: its agent replays some steps of a stored trial, then gold goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_super.agents.gold import GoldAgent
from pytest_super.agents.registry import AgentSettings, make_gold
from pytest_super.agents.replay import ReplayAgent, read_steps
from pytest_super.tasks.solution import GoldCells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task
    from pytest_super.trial.trial import Trial

VARIABLE = "SUPER_PROBES"
"""Names a JSON file with the probes of each task by its id, that of epoch 1 first."""


def replayable(trajectory: Path) -> list[Step]:
    """The steps that are replayed, without submissions. Raises SuperError for one that cannot be."""
    return [step for step in ReplayAgent(read_steps(trajectory)).steps if step.action.type != "submit"]


class ProbeAgent:
    def __init__(self, steps: Sequence[Step], gold: GoldAgent) -> None:
        self.steps = steps
        self.gold = gold

    def run(self, trial: Trial) -> None:
        replay = ReplayAgent(())
        replay.steps = list(self.steps)
        replay.run(trial)
        if trial.kernel.is_running:
            trial.interrupt()
        self.gold.run(trial)


def pytest_super_make_agent(task: Task, epoch: int) -> ProbeAgent:
    probes = json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))[task.id]
    if epoch > len(probes):
        pytest.skip("there are fewer states of this task")
    probe = probes[epoch - 1]
    gold = make_gold(task, AgentSettings())
    assert isinstance(gold, GoldAgent)
    gold.solution = GoldCells(gold.solution.cells[probe["cell"] :], gold.solution.answer - probe["cell"])
    return ProbeAgent(replayable(Path(probe["trajectory"]))[: probe["steps"]], gold)
