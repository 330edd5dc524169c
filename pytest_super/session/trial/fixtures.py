"""The fixtures of a task item. A conftest can override each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from pytest_super.model.completion import Model
from pytest_super.session.run import RUN
from pytest_super.tasks.task import Task
from pytest_super.trial.budget import Budget

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.trial.agent_run import Agent


@pytest.fixture
def super_task(request: pytest.FixtureRequest) -> Task:
    """The task of this item. It contains the gold answer: do not show it to the agent."""
    task: Task = request.node.task
    return task


@pytest.fixture
def super_agent(request: pytest.FixtureRequest, super_task: Task) -> Agent:
    """The agent that --super-agent names, made for this trial."""
    config = request.config
    name = config.stash[RUN].settings.agent
    agent: Agent | None = request.node.ihook.pytest_super_make_agent(
        config=config, name=name, task=super_task, epoch=request.node.epoch
    )
    if agent is None:
        pytest.skip(f"the agent {name} cannot try this task")
    return agent


@pytest.fixture
def super_budget(super_task: Task) -> Budget:
    """What the trial can spend, by default as the task file states."""
    from pytest_super.trial.budget import budget_for

    return budget_for(super_task)


@pytest.fixture
def super_model(request: pytest.FixtureRequest, super_budget: Budget) -> Model | None:
    """The model that --super-model names, charged to this trial; None without one."""
    from pytest_super.session.trial.models import open_model

    return open_model(request.node, super_budget)


@pytest.fixture
def super_make_kernel(request: pytest.FixtureRequest, super_task: Task) -> Iterator[Callable[[], Kernel]]:
    """Makes a fresh kernel for each attempt at the task, and closes the previous one."""
    from pytest_super.session.trial.kernels import start_kernel

    with ExitStack() as last:

        def make() -> Kernel:
            last.close()
            kernel = start_kernel(request.node, super_task)
            last.callback(kernel.close)
            return kernel

        yield make


@pytest.fixture
def super_kernel(super_make_kernel: Callable[[], Kernel]) -> Kernel:
    """A fresh kernel in a fresh sandbox, with the repository if the task provides it."""
    return super_make_kernel()
