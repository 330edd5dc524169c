"""Script-executed (SUPER, 3.3.2 and B.2): whether the entrypoint was really run, long enough and well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.matching.plain_text import without_escapes
from pytest_super.metrics.script_runs.cell_runs import Notebook
from pytest_super.metrics.script_runs.failures import is_failure
from pytest_super.metrics.script_runs.places import inside, may_be
from pytest_super.store.trajectory import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.metrics.script_runs.shell_runs import Run
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Entrypoint

_CARRY_ON = ("continue_wait", "interrupt")


def script_executed(
    steps: Sequence[Step], entrypoint: Entrypoint | None, *, repository: str | None = None
) -> float | None:
    """1.0 when a cell of the agent ran the entrypoint, ended well and lasted `min_seconds`, else 0.0.

    None for a task without an entrypoint, and instead of 0.0 where a program may have run it unseen (see
    `may_hide_run`). Run means started as a script, module, executable or notebook
    by a shell line, a magic or a Python call of the cell; a run in the background counts when the shell
    waits for it. A cell that timed out counts once it was waited for to its end. A printed exception, a
    refusal of the script's arguments or a script that could not be started is no success (see
    `failures`). `repository` is where the repository lies in the sandbox's working directory when it was
    put there ("" for the directory itself); clones are seen in the cells. Pre-executed cells are read for
    where they lead (`%cd`, names, clones) and never credited.
    """
    if entrypoint is None:
        return None
    notebook = Notebook()
    notebook.clones += [] if repository is None else [repository]
    if any(_counts(cell, notebook, entrypoint) for cell in _cells(steps)):
        return 1.0
    return None if any(may_hide_run(step, entrypoint.min_seconds) for step in steps) else 0.0


def may_hide_run(step: Step, min_seconds: float) -> bool:
    """Whether it is a program of the agent's in the sandbox that ran as long as a run that counts must.

    Nobody knows what it ran. One that was refused, because a cell still ran, has run nothing.
    """
    has_run = step.origin == "agent" and step.action.type == PROGRAM and not is_refused(step)
    return has_run and step.seconds >= min_seconds


def is_refused(step: Step) -> bool:
    """Whether nothing was run because a cell was running: an error that took no time."""
    return step.outcome == Outcome.ERROR and not step.seconds


@dataclass
class _Cell:
    """An executed cell, with what later steps showed of it."""

    source: str
    is_agents: bool
    outcome: str
    output: str
    seconds: float

    def carry_on(self, step: Step) -> None:
        self.outcome = step.outcome
        self.output += _output(step)
        self.seconds = max(self.seconds, step.seconds)


def _cells(steps: Sequence[Step]) -> Iterator[_Cell]:
    cell: _Cell | None = None
    for step in steps:
        is_running = cell is not None and cell.outcome == Outcome.TIMED_OUT
        if cell is not None and is_running and step.action.type in _CARRY_ON:
            cell.carry_on(step)
        elif step.action.type == "execute" and not (is_running and is_refused(step)):
            if cell is not None:
                yield cell
            agents = step.origin == "agent"
            cell = _Cell(step.action.content, agents, step.outcome, _output(step), step.seconds)
    if cell is not None:
        yield cell


def _counts(cell: _Cell, notebook: Notebook, entrypoint: Entrypoint) -> bool:
    folder = notebook.folder
    runs = [run for run in notebook.read(cell.source) if _is_entrypoint(run, entrypoint.path, notebook)]
    ended_well = cell.outcome == Outcome.OK
    if cell.outcome in (Outcome.KERNEL_DIED, Outcome.SANDBOX_LOST):
        notebook.folder = ""
    elif notebook.folder != folder and (not ended_well or "No such file or directory" in cell.output):
        notebook.lose_folder()
    if not (cell.is_agents and ended_well and cell.seconds >= entrypoint.min_seconds):
        return False
    return any(not is_failure(cell.output, run.path) for run in runs)


def _is_entrypoint(run: Run, entrypoint: str, notebook: Notebook) -> bool:
    if not may_be(run.path, entrypoint):
        return False
    relative = [path for root in notebook.clones if (path := inside(run.path, root)) is not None]
    # An entrypoint with folders may be given from outside the repository: its own folders tell enough.
    return "/" in entrypoint or not relative or entrypoint in relative


def _output(step: Step) -> str:
    texts = "".join(text for output in step.outputs for text in _texts(output)) or step.observation
    return without_escapes(texts).replace("\r\n", "\n").replace("\r", "\n") + "\n"


def _texts(output: dict[str, Any]) -> Iterator[str]:
    """The texts of one nbformat output; those of a stream go on where the last one ended."""
    if "text" in output:
        yield "".join(output["text"])
    elif "traceback" in output:
        yield "\n".join(["", *output["traceback"], ""])
    elif "text/plain" in output.get("data", {}):
        yield "\n".join(["", "".join(output["data"]["text/plain"]), ""])
