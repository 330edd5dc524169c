"""What a trial leaves behind, from which its metrics are computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_super.store.trajectory import Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Landmark:
    """The result of the search for one landmark."""

    pattern: str
    step: int | None = None
    """Number of the first step whose output matched; None if no output did."""
    is_echo: bool = False
    """The matched text is also in the source of that cell, as in `print("training completed")`."""
    timed_out: bool = False
    """The search took too long and was given up for the rest of the trial."""

    @property
    def is_hit(self) -> bool:
        return self.step is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class GradedValue:
    """One value of a task's grader."""

    name: str
    score: float
    """From 0 to 1; 1 if it is right."""
    found: str = ""
    """The value, as a short text; "" without one."""
    expected: str = ""
    """What it should be, as a short text."""
    why: str = ""
    """Why there is no value."""
    exit_code: int | None = None
    """That of the command, in the first value that only its end explains; None if it was stopped."""
    printed: str = ""
    """The end of what the command printed, in the same value."""
    command: str = ""
    """Which of the grader's commands it comes from; "" if there is one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """Something that makes the trial doubtful, seen from where the agent cannot reach."""

    kind: str
    evidence: str
    """A short text."""
    step: int | None = None
    """Number of the step at which it was seen; None if it belongs to no step."""
    is_suspect: bool = False
    """An honest agent has no reason for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What the trial used of its budget."""

    compute_seconds: float = 0.0
    model_seconds: float = 0.0
    wall_seconds: float = 0.0
    waited_seconds: float = 0.0
    """Waiting for rate limits and retries, which is not charged as wall time."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    """None if no call had a known price."""
    recorded: int = 0
    """Answers that come from another run; `recorded_usd` is their part of the cost."""
    recorded_usd: float = 0.0
    provided: int = 0
    """Answers that the provider gave in this run."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A trial that has ended. A metric also receives its task."""

    steps: Sequence[Step]
    """All steps in order, including pre-executed ones."""
    submission: Any = None
    """The submitted JSON value. None can itself be submitted: see `submitted`."""
    submitted: bool = False
    landmarks: Sequence[Landmark] = ()
    """One for each landmark of the task, in its order."""
    graded: Sequence[GradedValue] = ()
    """The values of the task's grader."""
    signs: Sequence[Sign] | None = None
    """What makes the trial doubtful; None if nobody looked."""
    repository: str | None = None
    """Name of the folder in the working directory that holds the repository; None without one."""
    files_known: bool = True
    """Whether a script's place in the repository can be judged: not in published trajectories."""
    spent: Spent = Spent()
