"""Agents: what chooses the next action."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.solution import read_solution

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.task import Task
    from pytest_super.trial import Agent

BUILT_IN = ("gold",)
# They run code that the user already has, so they may run without isolation.
TRUSTED = ("gold",)


def find_agent(name: str) -> Callable[[Task], Agent | None]:
    """A factory of agents by name: a built-in one, or `package.module:Name`, which takes no arguments.

    The factory gives None for a task that the agent cannot try. Raises SuperError for an unknown name.
    """
    if name == "gold":
        return make_gold
    if ":" not in name:
        known = ", ".join(BUILT_IN)
        raise SuperError(f"unknown agent `{name}`: known are {known}, or package.module:Name of your own")
    module_name, _, attribute = name.partition(":")
    try:
        made = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise SuperError(f"the agent `{name}` cannot be imported: {error}") from error
    return lambda _task: made()


def make_gold(task: Task) -> Agent | None:
    from pytest_super.agents.gold import GoldAgent

    if task.solution is None:
        return None
    return GoldAgent(read_solution(task.solution, Path(task._path).parent))
