"""Whether a cell of a trial ran the entrypoint, by what the cells say and print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.script_runs.cell_runs import Notebook
from pytest_super.metrics.script_runs.failures import is_failure, output_of
from pytest_super.metrics.script_runs.places import is_entrypoint
from pytest_super.metrics.script_runs.programs import is_refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Entrypoint

_CARRY_ON = ("continue_wait", "interrupt")


def ran_entrypoint(
    steps: Sequence[Step], entrypoint: Entrypoint, *, repository: str | None, processes: bool = True
) -> bool:
    """Whether one of the agent's cells ran the entrypoint, ended well and took at least `min_seconds`.

    To run means to start it as a script, module, executable or notebook by a shell line, a magic or a Python
    call of the cell; with `processes` False, only without a process of its own. A run in the background
    counts if the shell waits for it. A cell that timed out counts if the agent waited for its end. A run
    fails if it printed an exception, refused its arguments or could not be started (see `failures`). The
    effects of pre-executed cells (`%cd`, names, clones) are followed.
    """
    notebook = Notebook()
    notebook.clones += [] if repository is None else [repository]
    return any(_counts(cell, notebook, entrypoint, processes) for cell in _cells(steps))


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
        self.output += output_of(step)
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
            cell = _Cell(step.action.content, agents, step.outcome, output_of(step), step.seconds)
    if cell is not None:
        yield cell


def _counts(cell: _Cell, notebook: Notebook, entrypoint: Entrypoint, processes: bool) -> bool:
    folder = notebook.folder
    # Also for cells that cannot count, because later cells depend on their folders and names.
    scripts = [run.path for run in notebook.read(cell.source) if processes or not run.is_process]
    runs = [path for path in scripts if is_entrypoint(path, entrypoint.path, notebook.clones)]
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
