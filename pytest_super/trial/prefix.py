"""Runs pre-executed cells and edits before the agent starts, without charge and without credit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import CellResult, Outcome, SandboxLostError
from pytest_super.store.trajectory import CONTINUED, Action, Step, now
from pytest_super.trial.editing import edit_action, edit_file, whole_lines
from pytest_super.trial.observation import observation_of
from pytest_super.trial.step_log import cell_fields

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.files import SandboxFiles
    from pytest_super.tasks.task import Edit, PreExecuted, Task


def pre_execute(task: Task, kernel: Kernel, after: int = 0) -> Iterator[Step]:
    """Run a task's prefix, except its first `after` parts, and yield each step when it has ended.

    Steps have the numbers of their parts. A cell that reaches the cell limit has two steps: the second one
    waits for its end, as in SUPER's runs. A cell can raise: a sub-problem can start from a failure. Raises
    InfrastructureError if a cell ends the kernel or an edit fails, because the agent has done nothing yet.
    """
    for number, part in enumerate(task.pre_execute[after:], after + 1):
        started = now()
        edit = part.edit
        parts = [edited(edit, kernel.files, number)] if edit else executed(part, task, kernel, number)
        for fields in parts:
            yield Step(number=number, origin="pre_execute", started=started, ended=now(), **fields)
            started = now()
    if task.pre_execute:
        kernel.pass_on_variables()


def executed(part: PreExecuted, task: Task, kernel: Kernel, number: int) -> Iterator[dict[str, Any]]:
    """Run a cell to its end, unless pytest-timeout ends the item. Yields fields of its steps."""
    assert part.cell is not None
    result = kernel.execute(part.cell, timeout=task.limits.cell)
    yield {"action": Action(type="execute", content=part.cell), **fields_of(result, number)}
    if result.is_running:
        waiting = Action(type="continue_wait")
        yield {"action": waiting, "thought": CONTINUED, **fields_of(kernel.wait(), number)}


def fields_of(result: CellResult, number: int) -> dict[str, Any]:
    if result.outcome in (Outcome.KERNEL_DIED, Outcome.SANDBOX_LOST):
        raise InfrastructureError(f"pre-executed cell {number} ended in {result.outcome}: {result.detail}")
    return {"observation": observation_of(result), **cell_fields(result)}


def edited(edit: Edit, files: SandboxFiles, number: int) -> dict[str, Any]:
    """Make an edit. Returns fields of its step, which has whole lines: agents copy how edits are written."""
    before, after = edit.before, edit.after
    try:
        before, after = whole_lines(files, edit.path, before, after)
        # As in SUPER's runs, blank lines at the end of whole lines are shown, but not written.
        written = after.rstrip("\n") if edit.before.endswith("\n") else after
        observation, outcome = edit_file(files, edit.path, before, written)
    except SandboxLostError as lost:
        observation, outcome = str(lost), "error"
    if outcome != "ok":
        raise InfrastructureError(f"pre-executed edit {number} of {edit.path} cannot be made: {observation}")
    return {"action": edit_action(edit.path, before, after), "observation": observation}
