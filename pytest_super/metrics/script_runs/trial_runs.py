"""Whether a cell of a trial ran the entrypoint, by what the cells say and print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_super.kernel.cell import Outcome
from pytest_super.metrics.script_runs.cell_runs import Notebook
from pytest_super.metrics.script_runs.failures import is_failure, output_of
from pytest_super.metrics.script_runs.places import UNKNOWN, is_entrypoint, join, may_be
from pytest_super.metrics.script_runs.process_runs import is_observed, is_refused
from pytest_super.store.trajectory import Step
from pytest_super.tasks.task import Entrypoint

_CARRY_ON = ("continue_wait", "interrupt")
# What `%%writefile` and the tool `create` print of a file that is new.
_NEW_FILE = re.compile(r"(?:Writing |File ')(.+?)(?:' created\.)?\n")


def run_verdicts(
    steps: Sequence[Step], entrypoint: Entrypoint, *, repository: str | None, files_known: bool
) -> dict[str, int]:
    """Why cells of the agent that start a script of the entrypoint's name do not count; "" if one counts.

    Each with its first step. If processes were observed, only scripts without a process of their own are
    read. If the repository's files are not known, all folders can have the entrypoint, except for installed
    packages and files that the agent made.
    """
    notebook, observed, made = Notebook(), is_observed(steps), set[str]()
    repositories = [] if repository is None else [repository]
    verdicts: dict[str, int] = {}
    for cell in _cells(steps):
        scripts = [path for path in _scripts(cell, notebook, observed) if may_be(path, entrypoint.path)]
        if files_known:
            runs = [path for path in scripts if is_entrypoint(path, entrypoint.path, repositories)]
        else:
            runs = [path for path in scripts if path not in made and "-packages/" not in path]
        if cell.is_agents and scripts:
            verdicts.setdefault(_why_not(cell, runs, entrypoint.min_seconds), cell.number)
        if cell.is_agents and (new := _NEW_FILE.match(cell.output)):
            made.add(join(notebook.folder, new[1]))
    return verdicts


@dataclass
class _Cell:
    """An executed cell, with the output and the outcome that later steps showed."""

    number: int
    source: str
    is_agents: bool
    outcome: str
    output: str
    seconds: float


def _cells(steps: Sequence[Step]) -> Iterator[_Cell]:
    cell: _Cell | None = None
    for step in steps:
        is_running = cell is not None and cell.outcome == Outcome.TIMED_OUT
        if cell is not None and is_running and step.action.type in _CARRY_ON:
            cell.outcome = step.outcome
            cell.output += output_of(step)
            # Not the sum: each step has the total seconds that the cell has run until then.
            cell.seconds = max(cell.seconds, step.seconds)
        # A cell that was refused while another one runs does not end that one.
        elif step.action.type in ("execute", "create") and not (is_running and is_refused(step)):
            if cell is not None:
                yield cell
            source, output, is_agents = step.action.content, output_of(step), step.origin == "agent"
            cell = _Cell(step.number, source, is_agents, step.outcome, output, step.seconds)
    if cell is not None:
        yield cell


def _scripts(cell: _Cell, notebook: Notebook, observed: bool) -> list[str]:
    """The scripts that it starts. Later cells depend on the folders and names of those that cannot count."""
    folder = notebook.folder
    scripts = [run.path for run in notebook.read(cell.source) if not (observed and run.is_process)]
    has_failed = cell.outcome != Outcome.OK or "No such file or directory" in cell.output
    if cell.outcome in (Outcome.KERNEL_DIED, Outcome.SANDBOX_LOST):
        # The next kernel starts in the working directory.
        notebook.folder = ""
    # `%cd` prints this error, but the cell ends well.
    elif notebook.folder != folder and has_failed:
        notebook.folder = UNKNOWN
    return scripts


def _why_not(cell: _Cell, runs: Sequence[str], min_seconds: float) -> str:
    if not runs:
        return "ran another file of that name"
    if cell.outcome != Outcome.OK:
        return f"did not end well ({cell.outcome})"
    if cell.seconds < min_seconds:
        return f"took less than {min_seconds:g} seconds"
    return "shows a failure" if all(is_failure(cell.output, path) for path in runs) else ""
