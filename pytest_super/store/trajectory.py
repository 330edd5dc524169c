"""The ordered steps of a trial: thought, action, observation, times, tokens."""

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pytest_super.store.json_lines import read_lines

# The types of a step that is a whole program. A program on the host acts by further steps, which come before
# its own.
PROGRAM, PROGRAM_BESIDE = "command", "host_command"
# The types of steps that a program's calls of its model tell of; they come before the program's own step.
TOOL_CALL, MESSAGE = "tool_call", "message"
# Steps that do nothing themselves: they show what others did, or what the program did inside.
TOLD = (PROGRAM_BESIDE, TOOL_CALL, MESSAGE)

# The thought of a pre-executed step that waits for a cell after its time limit, as in SUPER's runs.
CONTINUED = "[continued after timeout]"

# From so many equal steps in a row on, an agent is said to repeat itself.
MANY_REPEATS = 10

Origin = Literal["pre_execute", "agent"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """The action of a step: `execute`, `edit`, `submit`, `interrupt`, `continue_wait`, …"""

    type: str
    content: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step. Only `origin` distinguishes pre-executed steps from the agent's own, never their text."""

    number: int
    origin: Origin
    action: Action
    attempt: int = 1
    """The number of the trial's attempt (--super-attempts)."""
    thought: str = ""
    observation: str = ""
    """The text that the agent sees."""
    outcome: str = "ok"
    """For a cell a kernel.cell.Outcome; for another action `ok` or `error`."""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    """The cell's nbformat 4 outputs."""
    omitted_characters: int = 0
    """The number of characters left out of the cell's long output, where a mark replaces them."""
    repeats: int = 1
    """How often in a row the agent has done this action and got this observation, this step included."""
    processes: list[dict[str, Any]] | None = None
    """Processes that have begun or ended since the last cell (see kernel.observed); None if unobserved."""
    files: dict[str, str] | None = None
    """Files of the working directory that changed since the step before (see SandboxFiles.changes); None if
    nobody looked."""
    dropped: dict[str, int] = field(default_factory=dict)
    """How many frames and messages from the sandbox did not fit, by kind (see kernel.incoming)."""
    landmarks: list[int] = field(default_factory=list)
    """Indices of the task's landmarks first seen in this step's output."""
    started: str = ""
    """ISO 8601 with offset."""
    ended: str = ""
    seconds: float = 0.0
    """How long the cell ran, until it ended or until the end of the step."""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def is_running(self) -> bool:
        """Whether the step ended before its cell."""
        return self.outcome == "timed_out"


def step_to_data(step: Step) -> dict[str, Any]:
    return asdict(step)


def step_from_data(data: dict[str, Any]) -> Step:
    return Step(**{**data, "action": Action(**data["action"])})


def now() -> str:
    """The current time in the format of a step, fine enough for the order of steps and calls of the model."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def read_trajectory(path: Path) -> list[Step]:
    return [step_from_data(data) for data in read_lines(path)]
