"""The plugin's own hooks. "Worker" is the process that runs the trial; without xdist, the only process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_super.kernel.sandbox import Sandbox
    from pytest_super.metrics import Metric
    from pytest_super.store.results import TrialResult
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task
    from pytest_super.trial.agent_run import Agent


@pytest.hookspec(firstresult=True)
def pytest_super_make_agent(config: pytest.Config, name: str, task: Task, epoch: int) -> Agent | None:
    """Make the agent that `--super-agent=name` names, a new one for each trial. Worker, at setup.

    Return None to leave it to the next plugin. Call pytest.skip if the agent cannot try the task::

        def pytest_super_make_agent(name):
            if name == "mine":
                return MyAgent()
    """


@pytest.hookspec(firstresult=True)
def pytest_super_make_sandbox(config: pytest.Config, task: Task) -> Sandbox | None:
    """Make, but do not start, the sandbox of a trial. Worker, at setup or while the previous trial runs.

    In the second case another thread opens it. Return None to leave it to the provider of --super-sandbox.
    """


def pytest_super_step(item: pytest.Item, step: Step) -> None:
    """A step was taken and is on disk. Worker, during the trial: be quick."""


def pytest_super_metrics(config: pytest.Config) -> Iterable[Metric] | None:
    """Add metrics to every trial of the run. Every process, when it starts.

    So only a conftest.py that pytest reads at its start can implement it, as the one next to the ini file::

        def cost(task, evidence):
            return evidence.spent.cost_usd

        def pytest_super_metrics():
            return [Metric(name="cost", compute=cost, higher_is_better=False)]
    """


def pytest_super_trial_finished(item: pytest.Item, result: TrialResult) -> None:
    """A trial has ended, is scored and is on disk. Worker, while the sandbox still exists."""


def pytest_super_run_finished(config: pytest.Config, results: list[TrialResult]) -> None:
    """The run is over. `results` contains the last run of each trial. Controller, before the summary."""
