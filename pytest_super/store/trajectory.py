"""The ordered steps of a trial: thought, action, observation, times, tokens."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

# Types of a step that is a whole program: inside the sandbox, so that nobody knows what it did there; and
# beside the trial, where all that it did in the trial are steps of their own before it.
PROGRAM, PROGRAM_BESIDE = "command", "host_command"

Origin = Literal["pre_execute", "agent"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """What is done in a step: `execute`, `edit`, `submit`, `interrupt`, `continue_wait`, …"""

    type: str
    content: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step. `origin` tells pre-executed steps from the agent's own; their text never does."""

    number: int
    origin: Origin
    action: Action
    attempt: int = 1
    """Which of the trial's attempts at the task it belongs to (--super-attempts)."""
    thought: str = ""
    observation: str = ""
    """What the agent is shown."""
    outcome: str = "ok"
    """Of a cell: a kernel.cell.Outcome; of another action `ok` or `error`."""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    """Of a cell: nbformat 4 outputs."""
    omitted_characters: int = 0
    """Of a cell: how many were left out of a long output; a mark stands in their place."""
    landmarks: list[int] = field(default_factory=list)
    """Indices of the task's landmarks first seen in this step's output."""
    started: str = ""
    """ISO 8601 with offset."""
    ended: str = ""
    seconds: float = 0.0
    """How long its cell ran, until idle or until the step ended."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


def step_to_data(step: Step) -> dict[str, Any]:
    return asdict(step)


def step_from_data(data: dict[str, Any]) -> Step:
    return Step(**{**data, "action": Action(**data["action"])})


def now() -> str:
    """The time as a step states it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
