"""Finds agents by name: built-in ones, those of packages, and programs."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import SuperError
from pytest_super.option_types import Retrieval
from pytest_super.programs.installed.agent import Additions, InstalledAgent, InstalledProgram
from pytest_super.trial.trial import Trial
from pytest_super.words import did_you_mean

if TYPE_CHECKING:
    from pytest_super.tasks.task import Task
    from pytest_super.trial.agent_run import Agent


Factory = Callable[["Task", "AgentSettings"], "Agent"]


# The entry-point group in which packages offer agents.
GROUP = "pytest_super.agents"


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """The options that the built-in agents use."""

    prompt: str | None = None
    """Replaces the agent's own system prompt."""
    trajectory: Path | None = None
    """The run's folder or trajectory that `replay` replays."""
    retrieval: Retrieval = field(default_factory=Retrieval)
    """What `agentless` puts into its prompts."""
    additions: Additions = field(default_factory=Additions)
    """What the user adds to a program in an image."""
    epoch: int = 1
    """The epoch of the trial for which the agent is made."""


def find_agent(name: str) -> Factory:
    """A factory for a built-in agent, an agent of a package (entry point), or `package.module:Name`.

    The last two are called without arguments, unless they are an InstalledAgent, which can have a version:
    `NAME==VERSION`. `command: ...` and `host-command: ...` name programs (see
    `programs.command` and `programs.host_command`). The factory calls pytest.skip for a task that the agent
    cannot try. Raises SuperError for an unknown name, and for a class that is no agent.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    kind, _, command = name.partition(":")
    if kind in ("command", "host-command"):
        return make_program(kind, command)
    if (installed := installed_agent(name)) is not None:
        return lambda _task, settings: InstalledProgram(installed, settings.additions)
    return own_agent(name, import_agent(name))


def offered_agents() -> EntryPoints:
    """The agents of installed packages."""
    return agents_on(tuple(sys.path))


@lru_cache(maxsize=1)
def agents_on(_path: tuple[str, ...]) -> EntryPoints:
    # Reads a file of every installed package, which takes as long as a short trial.
    return entry_points(group=GROUP)


def installed_agent(name: str) -> InstalledAgent | None:
    """The agent of this name, perhaps `NAME==VERSION`, if it is a program in an image. Raises SuperError."""
    base, equals, version = name.partition("==")
    if base not in offered_agents().names:
        return None
    made = import_agent(base)
    if not isinstance(made, InstalledAgent):
        return None
    return made.at(version) if equals else made


def runs_cells(name: str, task: Task) -> bool:
    """Whether the agent runs cells of its own, so that its kernel is best ready before it starts."""
    if name == "gold":
        # It writes the functions of a paper.
        return not task.functions
    return not is_program(name)


def is_program(name: str) -> bool:
    """Whether the agent is a program in the sandbox."""
    return name.startswith("command:") or installed_agent(name) is not None


def installed_names() -> list[str]:
    """The names of all agents that are programs in images."""
    return [name for name in sorted(offered_agents().names) if isinstance(import_agent(name), InstalledAgent)]


def import_agent(name: str) -> Any:
    """A package's or a user's own class or function. Raises SuperError."""
    offered = offered_agents()
    module_name, _, attribute = name.partition(":")
    if not (module_name and attribute) and name not in offered.names:
        known = [*BUILT_IN, *sorted(offered.names)]
        choices = f"use {', '.join(known)}, or package.module:Name of your own"
        raise SuperError(f"unknown agent `{name}`: {choices}{did_you_mean(name, known)}")
    try:
        if name in offered.names:
            return offered[name].load()
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise SuperError(
            f"the agent `{name}` cannot be imported: {why_not_imported(module_name, error)}"
        ) from error
    if not hasattr(module, attribute):
        why = f"{module_name} has no {attribute}{did_you_mean(attribute, vars(module))}"
        raise SuperError(f"the agent `{name}` cannot be imported: {why}")
    return getattr(module, attribute)


def why_not_imported(module: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == module:
        return f"{error}; the ini value `pythonpath = .` finds modules next to the ini file"
    if isinstance(error, ImportError | SyntaxError):
        return str(error)
    # What a module's own code raises while it is imported can be anything.
    *_, frame = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"


def own_agent(name: str, made: Any) -> Factory:
    """A factory that calls `made`, a class or a function. Raises SuperError for what cannot make an agent."""
    if not callable(made):
        raise SuperError(f"the agent `{name}` cannot be called: name the class or function that makes it")
    try:
        inspect.signature(made).bind()
    except TypeError as error:
        raise SuperError(
            f"the agent `{name}` cannot be made without arguments: {error}; give each a default"
        ) from None
    except ValueError:
        # A class of an extension module can have no signature.
        pass
    if isinstance(made, type):
        refuse_without_run(name, made)

    def make(_task: Task, _settings: AgentSettings) -> Agent:
        try:
            agent: Agent = made()
        except (Exception, SystemExit) as error:
            return NotMade(error)
        # What a function makes is only known now.
        refuse_without_run(name, agent)
        return agent

    return make


class NotMade:
    """Stands for an agent that could not be made: its trial ends as if `run` had raised."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def run(self, _trial: Trial) -> None:
        raise self._error


def refuse_without_run(name: str, made: object) -> None:
    if not callable(getattr(made, "run", None)):
        raise SuperError(f"the agent `{name}` has no method `run(self, trial)`, which a trial calls: add it")


def make_gold(task: Task, _settings: AgentSettings) -> Agent:
    from pytest_super.agents.gold import GoldAgent
    from pytest_super.tasks.paper_item import PaperItem
    from pytest_super.tasks.solution import read_solution

    if isinstance(task, PaperItem):
        from pytest_super.agents.gold_functions import GoldFunctionsAgent

        return GoldFunctionsAgent(task)
    if task.solution is None:
        pytest.skip("the agent gold cannot try this task: it has no solution")
    solution = read_solution(task.solution, task.folder)
    return GoldAgent(solution, has_answer=task.has_answer or task.grade is None)


def make_program(kind: str, command: str) -> Factory:
    made: Callable[[str], Agent]
    if kind == "command":
        from pytest_super.programs.command import CommandAgent as made
    else:
        from pytest_super.programs.host_command import HostCommandAgent as made
    # Reports a wrong command line at the start of the run, not in the first trial.
    made(command)
    return lambda _task, _settings: made(command)


def make_react(_task: Task, settings: AgentSettings, *, edit: bool = False) -> Agent:
    from pytest_super.agents.react.agent import ReActAgent

    return ReActAgent(settings.prompt, edit=edit)


def make_swe_agent(_task: Task, settings: AgentSettings) -> Agent:
    from pytest_super.agents.swe.agent import SweAgent

    return SweAgent(settings.prompt)


def make_agentless(task: Task, settings: AgentSettings) -> Agent:
    from pytest_super.agents.agentless.agent import AgentlessAgent

    if not task.functions:
        pytest.skip("the agent agentless cannot try this task: it has no masked functions")
    return AgentlessAgent(settings.retrieval, settings.prompt)


def make_replay(task: Task, settings: AgentSettings) -> Agent:
    from pytest_super.agents.replay import ReplayAgent, stored_steps

    assert settings.trajectory is not None
    steps = stored_steps(settings.trajectory, task.id, settings.epoch)
    if steps is None:
        pytest.skip(
            f"the agent replay cannot try this task: {settings.trajectory} has no trajectory of {task.id}"
        )
    return ReplayAgent(steps)


BUILT_IN: dict[str, Factory] = {
    "gold": make_gold,
    "react": make_react,
    "react-super": partial(make_react, edit=True),
    "swe-agent": make_swe_agent,
    "agentless": make_agentless,
    "replay": make_replay,
}
# These run code that the user already has, so they can run without isolation.
TRUSTED = ("gold", "replay")
NEED_MODEL = ("react", "react-super", "swe-agent", "agentless")
