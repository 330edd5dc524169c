"""Which model a run asks, and how; and which trial asks it, under which limits."""

from dataclasses import dataclass
from typing import Any

SCRIPTED = "scripted:"


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """What the gateway's process gets from its clients. Plain JSON values; never keys."""

    name: str
    """A name that litellm knows, or `scripted:FILE`."""
    parameters: dict[str, Any]
    """What the user set for every call; it wins over an agent's parameters."""
    max_cost: float | None
    """US dollars, for the whole run."""
    calls: str
    """The file that gets a line for every call: its usage, and the model that served it."""
    record: str | None
    """The folder for the answers of trials: see store.answers."""
    answers: str | None = None
    """The folder of another run, or an archive, whose answers are given again."""
    needs_answers: bool = False
    """Whether a call that is not among these fails; otherwise the model is asked."""
    is_fork: bool = False
    """Whether each trial begins with all answers of the one that is there, and only then asks the model."""
    is_for_program: bool = False
    """Whether programs ask, most of which speak their provider's own protocol."""


@dataclass(frozen=True, kw_only=True)
class CallingTrial:
    """A trial and its present limits, which each of its requests states."""

    name: str
    """`TASK/EPOCH.RERUN`, unique in the run."""
    task: str
    epoch: int
    token_limit: int | None
    """Prompt tokens in total."""
    cost_limit: float | None
    is_open: bool = False
    """Whether the task's network is open, so that the provider may run its own tools."""
    is_program: bool = False
    """Whether a program asks, whose parameters win over the user's."""
