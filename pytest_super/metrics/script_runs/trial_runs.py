"""Whether a cell of a trial ran the entrypoint, by what the cells say and print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.matching.plain_text import without_escapes
from pytest_super.metrics.script_runs.cell_runs import Notebook
from pytest_super.metrics.script_runs.failures import is_failure
from pytest_super.metrics.script_runs.places import inside, may_be
from pytest_super.metrics.script_runs.programs import is_refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Entrypoint

_CARRY_ON = ("continue_wait", "interrupt")


def ran_entrypoint(steps: Sequence[Step], entrypoint: Entrypoint, *, repository: str | None) -> bool:
    """Whether one of the agent's cells counts as a run, as `script_executed` describes it."""
    notebook = Notebook()
    notebook.clones += [] if repository is None else [repository]
    return any(_counts(cell, notebook, entrypoint) for cell in _cells(steps))


@dataclass
class _Cell:
    """An executed cell, with the output and the outcome that later steps showed."""

    source: str
    is_agents: bool
    outcome: str
    output: str
    seconds: float

    def carry_on(self, step: Step) -> None:
        self.outcome = step.outcome
        self.output += _output(step)
        # Not the sum: each step has the total seconds that the cell has run until then.
        self.seconds = max(self.seconds, step.seconds)


def _cells(steps: Sequence[Step]) -> Iterator[_Cell]:
    cell: _Cell | None = None
    for step in steps:
        is_running = cell is not None and cell.outcome == Outcome.TIMED_OUT
        if cell is not None and is_running and step.action.type in _CARRY_ON:
            cell.carry_on(step)
        # A cell that was refused while another one runs does not end that one.
        elif step.action.type == "execute" and not (is_running and is_refused(step)):
            if cell is not None:
                yield cell
            agents = step.origin == "agent"
            cell = _Cell(step.action.content, agents, step.outcome, _output(step), step.seconds)
    if cell is not None:
        yield cell


def _counts(cell: _Cell, notebook: Notebook, entrypoint: Entrypoint) -> bool:
    folder = notebook.folder
    # Also for cells that cannot count, because later cells depend on their folders and names.
    runs = [path for path in notebook.read(cell.source) if _is_entrypoint(path, entrypoint.path, notebook)]
    ended_well = cell.outcome == Outcome.OK
    if cell.outcome in (Outcome.KERNEL_DIED, Outcome.SANDBOX_LOST):
        # The next kernel starts in the working directory.
        notebook.folder = ""
    # `%cd` prints this error, but the cell ends well.
    elif notebook.folder != folder and (not ended_well or "No such file or directory" in cell.output):
        notebook.lose_folder()
    if not (cell.is_agents and ended_well and cell.seconds >= entrypoint.min_seconds):
        return False
    return any(not is_failure(cell.output, path) for path in runs)


def _is_entrypoint(script: str, entrypoint: str, notebook: Notebook) -> bool:
    if not may_be(script, entrypoint):
        return False
    relative = [path for root in notebook.clones if (path := inside(script, root)) is not None]
    # The path of an entrypoint with folders is specific enough, whatever folder it is started from.
    return "/" in entrypoint or not relative or entrypoint in relative


def _output(step: Step) -> str:
    # Published steps have no outputs, only the text that the agent was shown.
    texts = "".join(text for output in step.outputs for text in _texts(output)) or step.observation
    return without_escapes(texts).replace("\r\n", "\n").replace("\r", "\n") + "\n"


def _texts(output: dict[str, Any]) -> Iterator[str]:
    """The texts of one nbformat output. A stream continues the line on which the last one ended."""
    if "text" in output:
        yield "".join(output["text"])
    elif "traceback" in output:
        yield "\n".join(["", *output["traceback"], ""])
    elif "text/plain" in output.get("data", {}):
        yield "\n".join(["", "".join(output["data"]["text/plain"]), ""])
