"""Refuses a worker's machine that cannot make the run's sandboxes, or that sees another image.

And tasks that cannot run side by side.
"""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from pytest_super.agents.registry import TRUSTED
from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.registry import AUTO, find_provider
from pytest_super.session.run import RUN, Run
from pytest_super.session.start.packages import makes_sandboxes, refuse_to_run
from pytest_super.session.trial.item import TaskItem
from pytest_super.words import counted

if TYPE_CHECKING:
    import pytest


def refuse_unfit_machine(config: pytest.Config, items: list[pytest.Item]) -> None:
    """End the session of a worker, and so the run, before its first trial. The message names the machine."""
    if not items or makes_sandboxes(config):
        return
    if reason := why_unfit(config.stash[RUN]):
        name = os.environ.get("SLURMD_NODENAME") or platform.node()
        refuse_to_run(config, items, f"the machine {name} cannot run trials: {reason}")


def refuse_shared_gpus(config: pytest.Config, items: list[pytest.Item], workers: int) -> None:
    """End the session if several workers run tasks with GPUs.

    The engine is asked for a number of devices and always gives the first ones.
    """
    tasks = sorted({item.task.id for item in items if isinstance(item, TaskItem) and item.task.sandbox.gpus})
    if tasks and workers > 1:
        refuse_to_run(
            config,
            items,
            f"{counted(len(tasks), 'task')} with `sandbox.gpus` ({tasks[0]}) cannot run on {workers} "
            "workers, because their trials would share the first GPU: run them with -n 1 or without -n",
        )


def why_unfit(run: Run) -> str | None:
    """What the controller has asked of its own machine, asked of this one."""
    if run.sandbox is None:
        return None
    provider, settings = find_provider(run.sandbox), run.settings.for_sandboxes
    try:
        reason = provider.why_unavailable()
        if reason is None and settings.image:
            reason = provider.why_unprepared(settings)
        if reason is None and provider.image_id(settings) != run.image_id:
            reason = f"{settings.image} is another image there than on the machine of the controller"
    except InfrastructureError as error:
        reason = str(error)
    if reason is None and run.settings.sandbox == AUTO and run.settings.agent not in TRUSTED:
        reason = provider.why_not_isolated()
    return reason
