"""What an agent is shown of a cell: its output, and a plain word on how it ended."""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.output import output_text
from pytest_super.kernel.terminal_text import as_shown, is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.kernel.cell import CellResult

STILL_RUNNING = (
    "A cell is still running, so this was not done: continue_wait waits on, interrupt stops the cell."
)
NOTHING_RUNS = "No cell is running."

# What stands for the middle of a long output. What comes after it moves up into the gap, not to what stood
# before it.
_GAP = re.compile(r"(\n\[\.\.\. \d+ characters left out \.\.\.\]\n)")


def observation_of(result: CellResult) -> str:
    """The output as a terminal would show it, then how the cell ended where that is not plain from it."""
    text, note = shown_output(result), ending(result)
    return "\n".join(part for part in (text.rstrip("\n") if note else text, note) if part)


def shown_output(result: CellResult) -> str:
    texts = [(output.get("name"), output_text(output)) for output in result.outputs]
    if all(is_plain(text) for _, text in texts):
        # Only here is the result's own text sure to have all: it keeps nothing of what was written over.
        return as_shown(result.text)
    parts = [""]
    was_apart = False
    for text, is_apart in shown_screens(texts):
        if (is_apart or was_apart) and parts[-1][-1:] not in ("", "\n"):
            parts.append("\n")
        parts.append(text)
        was_apart = is_apart
    return "".join(parts)


def shown_screens(texts: list[tuple[str | None, str]]) -> Iterator[tuple[str, bool]]:
    """What each run of one stream and each display or error shows, and whether on lines of its own.

    A kernel sends its two streams in an order that is not sure: what one moves up to and writes over may be
    a line of the other, which would be lost if they shared a screen.
    """
    for name, run in groupby(texts, key=itemgetter(0)):
        if name is None:
            yield from ((f"{as_shown(text)}\n", True) for _, text in run)
        elif stream := "".join(text for _, text in run):
            yield "".join(map(as_shown, _GAP.split(stream))), not is_plain(stream)


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
