"""The result of one cell: its outcome, its output, its time."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.observed import ObservedProcess

# IPython ends the command and goes on, without an error.
WENT_ON = "an interrupt ends a shell command (`!`), not the lines after it"


class Outcome(StrEnum):
    """Every way in which a wait for a cell can end."""

    OK = "ok"
    ERROR = "error"
    """The cell raised."""
    TIMED_OUT = "timed_out"
    """The wait timed out and the cell still runs: wait again or interrupt it."""
    INTERRUPTED = "interrupted"
    """The cell ended because it was interrupted."""
    KERNEL_DIED = "kernel_died"
    """The kernel process died but the sandbox lives. The kernel's state is lost; it needs a restart."""
    SANDBOX_LOST = "sandbox_lost"
    """The sandbox is gone, but its engine still answers."""


class CellStateError(RuntimeError):
    """A call in the wrong state: running a cell while another runs, or waiting when no cell runs."""


class NoValueError(InfrastructureError, ValueError):
    """The kernel yields no JSON value of an expression. The text, which says why, is the kernel's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellResult:
    """The result of a wait for a cell, with the output since the last result of the same cell."""

    outcome: Outcome
    text: str = ""
    """The output as a terminal without colours shows it; only head and tail of a long one."""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    """The same output as nbformat 4: stream, display_data, execute_result, error."""
    omitted: int = 0
    """Characters cut between head and tail; 0 when the output is complete."""
    detail: str = ""
    """The cause: `ValueError: bad` for an error, `out of memory` for a death; WENT_ON after an interrupt."""
    exit_code: int | None = None
    """Of a program that has ended: -N for the signal N. None for cells."""
    seconds: float = 0.0
    """Total seconds that the cell has run, until it ended or until now."""
    processes: list[ObservedProcess] | None = None
    """Processes that have begun or ended since the last result; None if the sandbox cannot observe them."""
    hung_up: str = ""
    """Processes that ended with the terminal of their shell command: pids, and arguments where known."""
    reading: str = ""
    """The arguments of processes that wait for input of such a terminal, where nobody types."""
    dropped: dict[str, int] = field(default_factory=dict)
    """How many frames and messages of each kind did not fit since the last result (see kernel.incoming)."""

    @property
    def is_running(self) -> bool:
        return self.outcome is Outcome.TIMED_OUT


class SandboxLostError(Exception):
    """The sandbox is gone but its engine answers: code inside ended it. `detail` says how."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.result = CellResult(outcome=Outcome.SANDBOX_LOST, detail=detail)

    def __str__(self) -> str:
        return f"the sandbox is gone: {self.detail}"
