"""How one cell went: its outcome, its output, its time."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """Every way in which waiting for a cell can end."""

    OK = "ok"
    ERROR = "error"
    """The cell raised."""
    TIMED_OUT = "timed_out"
    """The wait is over, the cell still runs: wait on or interrupt."""
    INTERRUPTED = "interrupted"
    """The cell ended because it was interrupted."""
    KERNEL_DIED = "kernel_died"
    """The kernel process is gone, the sandbox lives; its state is lost and a restart is needed."""
    SANDBOX_LOST = "sandbox_lost"
    """The sandbox is gone while its engine answers."""


class CellStateError(RuntimeError):
    """A call that does not fit the state of the cell: to run one while another runs, to wait for none."""


class SandboxLostError(Exception):
    """The sandbox is gone while its engine answers: what ran inside has ended it. `detail` says how."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"the sandbox is gone: {self.detail}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CellResult:
    """What waiting for a cell gave. Output is what came since the last result of the same cell."""

    outcome: Outcome
    text: str = ""
    """The output as plain text in the order it came, head and tail where it was long."""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    """The same as nbformat 4 outputs: stream, display_data, execute_result, error."""
    omitted: int = 0
    """Characters cut out between head and tail: the output was capped when this is not 0."""
    detail: str = ""
    """Why: `ValueError: bad` for an error, `exit code 3` or `out of memory` for a death."""
    seconds: float = 0.0
    """How long the cell has run in all, until it was idle or until now."""

    @property
    def is_running(self) -> bool:
        return self.outcome is Outcome.TIMED_OUT
