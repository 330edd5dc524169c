"""The gold agent: runs the solution and submits its answer, which tests the task and the harness."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.kernel.cell import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.solution import GoldCells
    from pytest_super.trial.trial import Trial


# Characters of a cell's error that a message shows.
MAX_ERROR = 300
TASKS_EXTRA = (
    " (`pip install 'pytest-super[tasks]'` installs the packages that the shipped tasks import; "
    "the kernel image has them for docker sandboxes)"
)


class GoldAgent:
    """Runs every cell of the solution to its end. Continues after a cell that raises: it can be intended."""

    def __init__(self, solution: GoldCells) -> None:
        self.solution = solution

    def run(self, trial: Trial) -> None:
        """Raises SuperError, naming the first cell that failed, when the answer's cell yields no answer."""
        steps = [run_to_end(trial, cell) for cell in self.solution.cells]
        try:
            answer = value_of(steps[self.solution.answer])
        except SuperError as error:
            raise SuperError(first_failure(steps) or str(error)) from None
        trial.submit(answer)


def run_to_end(trial: Trial, cell: str) -> Step:
    step = trial.execute(cell)
    while step.outcome == Outcome.TIMED_OUT:
        step = trial.continue_wait()
    return step


def first_failure(steps: Sequence[Step]) -> str | None:
    """A message about the first cell of the solution that failed, or None."""
    for number, step in enumerate(steps, start=1):
        if step.outcome != Outcome.OK:
            error = error_of(step)
            hint = TASKS_EXTRA if error.startswith("ModuleNotFoundError") else ""
            return f"the solution yields no answer, because its cell {number} failed: {error}{hint}"
    return None


def error_of(step: Step) -> str:
    """The type and last line of the cell's exception, or else the last line of its observation."""
    errors = [output for output in step.outputs if output["output_type"] == "error"]
    kind = f"{errors[-1]['ename']}: " if errors else ""
    text = errors[-1]["evalue"] if errors else step.observation
    lines = text.strip().splitlines() or [str(step.outcome)]
    return f"{kind}{lines[-1].strip()}"[:MAX_ERROR]


def value_of(step: Step) -> Any:
    """The JSON value of a cell: its last expression, or else its whole output.

    Raises SuperError if that is neither JSON nor a Python literal.
    """
    results = [output for output in step.outputs if output["output_type"] == "execute_result"]
    text = results[-1]["data"].get("text/plain", "") if results else step.observation
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text.strip())
            json.dumps(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return value
    raise SuperError(f"the solution's answer cell yields a value that is not JSON: {text[:200]!r}")
