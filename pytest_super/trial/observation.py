"""The observation of a cell: its output, and a note on how the cell ended."""

from pytest_super.kernel.cell import WENT_ON, CellResult, Outcome
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


def observation_of(result: CellResult) -> str:
    """The output as a terminal would show it, then notes on what it does not show: an end, lost processes."""
    lost = f"[Ended with its shell command's terminal: process {result.hung_up}. {LIVING_ON}]"
    notes = [ending(result), lost if result.hung_up and result.detail != WENT_ON else ""]
    text, note = result.text, "\n".join(filter(None, notes))
    return "\n".join(part for part in (text.rstrip("\n") if note else text, note) if part)


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
