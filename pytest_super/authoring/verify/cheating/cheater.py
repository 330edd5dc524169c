"""A plugin of the runs of cheats: its agent does what one of them does."""

from __future__ import annotations

import pytest

from pytest_super.authoring.tries import try_of
from pytest_super.authoring.verify.cheating.cheat import Cheat, Known
from pytest_super.authoring.verify.cheating.registry import cheats
from pytest_super.tasks.task import Task
from pytest_super.trial.trial import Trial


class Cheater:
    def __init__(self, cheat: Cheat, known: Known) -> None:
        self.cheat = cheat
        self.known = known

    def run(self, trial: Trial) -> None:
        trial.submit(self.cheat.act(trial, self.known))


def honest() -> None:
    """Names an agent that no one trusts; the plugin makes another one in its place."""
    raise AssertionError("the plugin makes the agent")


def pytest_super_make_agent(task: Task, epoch: int) -> Cheater:
    if (tried := try_of(task.id, epoch)) is None:
        pytest.skip("fewer cheats are tried on this task")
    known = Known(task=task, outputs=tried["outputs"], printed=tried["printed"])
    return Cheater(cheats()[tried["cheat"]], known)
