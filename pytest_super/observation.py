"""What an agent is shown of a cell: its output, and a plain word on how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.kernel.cell import Outcome

if TYPE_CHECKING:
    from pytest_super.kernel.cell import CellResult

STILL_RUNNING = (
    "A cell is still running, so this was not done: continue_wait waits on, interrupt stops the cell."
)
NOTHING_RUNS = "No cell is running."


def observation_of(result: CellResult) -> str:
    note = ending(result)
    return "\n".join(part for part in (result.text.rstrip("\n") if note else result.text, note) if part)


def ending(result: CellResult) -> str:
    match result.outcome:
        case Outcome.TIMED_OUT:
            ran = f"The cell has run for {result.seconds:.0f} seconds and is still running"
            return f"[{ran}: continue_wait waits on, interrupt stops it.]"
        case Outcome.INTERRUPTED:
            return "[The cell was interrupted.]"
        case Outcome.KERNEL_DIED:
            return f"[The kernel died: {result.detail}. A new one runs: variables are lost, files are kept.]"
        case Outcome.SANDBOX_LOST:
            return f"[The sandbox is gone: {result.detail}.]"
    return ""
