"""The observation of a cell: its output, and a note on how the cell ended."""

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from pytest_super.kernel.cell import WENT_ON, CellResult, Outcome
from pytest_super.kernel.output import output_text
from pytest_super.kernel.terminal_text import as_shown, is_plain
from pytest_super.words import printable_line

STILL_RUNNING = (
    "A cell is still running, so this was not done: continue_wait keeps waiting, interrupt stops the cell."
)
ONLY_SUBMIT = (
    "The compute time is spent, so this was not done: everything in the sandbox was stopped. "
    "Only submit is left."
)
LIVING_ON = (
    "To go on after its line, start it by subprocess.Popen([...], start_new_session=True, "
    "stdout=open('log', 'w')), or as `COMMAND > log 2>&1 &` in a cell that begins with %%bash."
)
ANSWERING = "Nobody types it: answer in the command, as by `!echo y | COMMAND` or an option."
NOTHING_RUNS = "No cell is running."

# The mark of omitted output. The text after it is rendered separately, so that cursor movements in it do not
# overwrite the text before the gap.
_GAP = re.compile(r"(\n\[\.\.\. \d+ characters left out \.\.\.\]\n)")


def observation_of(result: CellResult) -> str:
    """The output as a terminal would show it, then notes on what it does not show: an end, lost processes."""
    lost = f"[Ended with its shell command's terminal: process {result.hung_up}. {LIVING_ON}]"
    notes = [ending(result), lost if result.hung_up and result.detail != WENT_ON else ""]
    text, note = shown_output(result), "\n".join(filter(None, notes))
    return "\n".join(part for part in (text.rstrip("\n") if note else text, note) if part)


def shown_output(result: CellResult) -> str:
    texts = [(output.get("name"), output_text(output)) for output in result.outputs]
    if all(is_plain(text) for _, text in texts):
        # Without terminal control, the result's own text is complete; otherwise it lacks overwritten text.
        return as_shown(result.text)
    parts = [""]
    was_apart = False
    for text, is_apart in rendered_runs(texts):
        if (is_apart or was_apart) and parts[-1][-1:] not in ("", "\n"):
            parts.append("\n")
        parts.append(text)
        was_apart = is_apart
    return "".join(parts)


def rendered_runs(texts: list[tuple[str | None, str]]) -> Iterator[tuple[str, bool]]:
    """The text of each run of one stream, display or error, and whether it needs its own lines."""
    for name, run in groupby(texts, key=itemgetter(0)):
        if name is None:
            yield from ((f"{as_shown(text)}\n", True) for _, text in run)
        elif stream := "".join(text for _, text in run):
            yield "".join(map(as_shown, _GAP.split(stream))), not is_plain(stream)


def ending(result: CellResult) -> str:
    match result.outcome:
        case Outcome.TIMED_OUT:
            ran = f"The cell has run for {result.seconds:.0f} seconds and is still running"
            stops = "interrupt stops it"
            if result.detail:
                ran += f" after the interrupt ({result.detail})"
                stops = "another interrupt replaces the kernel (variables are lost, files are kept)"
            waits = f" {result.reading} waits for input. {ANSWERING}" if result.reading else ""
            return f"[{ran}: continue_wait keeps waiting, {stops}.{waits}]"
        case Outcome.INTERRUPTED:
            after = f", and ran to its end: {result.detail}" if result.detail == WENT_ON else ""
            return f"[The cell was interrupted{after}.]"
        case Outcome.ERROR if all(output["output_type"] != "error" for output in result.outputs):
            return f"[The cell failed: {printable_line(result.detail)}]"
        case Outcome.KERNEL_DIED:
            # Written before the restart, which can fail.
            after = "a new one is started, variables are lost, files are kept"
            return f"[The kernel died: {result.detail}; {after}.]"
        case Outcome.SANDBOX_LOST:
            return f"[The sandbox is gone: {result.detail}.]"
    return ""
