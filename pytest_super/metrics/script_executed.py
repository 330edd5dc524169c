"""Script-executed (SUPER, 3.3.2 and B.2): whether the agent ran the entrypoint, long enough and well."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.matching.plain_text import without_escapes
from pytest_super.metrics.metric import Metric
from pytest_super.metrics.script_runs.cell_runs import Notebook
from pytest_super.metrics.script_runs.failures import is_failure
from pytest_super.metrics.script_runs.places import inside, may_be
from pytest_super.metrics.script_runs.programs import is_refused, may_hide_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.metrics.evidence import Evidence
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Entrypoint, Task

_CARRY_ON = ("continue_wait", "interrupt")


def script_executed(
    steps: Sequence[Step], entrypoint: Entrypoint | None, *, repository: str | None = None
) -> float | None:
    """1.0 if a cell of the agent ran the entrypoint, ended well and lasted `min_seconds`, else 0.0.

    None for a task without an entrypoint, and instead of 0.0 if a program may have run it unseen (see
    `may_hide_run`). To run means to start it as a script, module, executable or notebook by a shell line,
    a magic or a Python call of the cell. A run in the background counts if the shell waits for it. A cell
    that timed out counts if the agent waited for its end. A run fails if it printed an exception, refused
    its arguments or could not be started (see `failures`). `repository` is the repository's folder in the
    sandbox's working directory ("" for that directory itself), or None; clones are read from the cells.
    Pre-executed cells are never credited, but their effects (`%cd`, names, clones) are followed.
    """
    if entrypoint is None:
        return None
    notebook = Notebook()
    notebook.clones += [] if repository is None else [repository]
    if any(_counts(cell, notebook, entrypoint) for cell in _cells(steps)):
        return 1.0
    return None if any(may_hide_run(step, entrypoint.min_seconds) for step in steps) else 0.0


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


def _has_entrypoint(task: Task) -> bool:
    return task.entrypoint is not None


def _of_trial(task: Task, evidence: Evidence) -> float | None:
    return script_executed(evidence.steps, task.entrypoint, repository=evidence.repository)


SCRIPT_EXECUTED = Metric(
    name="script_executed",
    title="executed",
    applies=_has_entrypoint,
    compute=_of_trial,
    reference=attrgetter("script_executed"),
    best=1.0,
    headline_of=frozenset({"auto"}),
)
