"""The gold agent: runs the solution and submits its answer, which tests the task and the harness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.store.step_values import error_of, parse_value
from pytest_super.store.trajectory import Step
from pytest_super.tasks.solution import GoldCells
from pytest_super.trial.trial import Trial

GOLD = "gold"
"""Its name."""
# From now on no `;` at the end of a cell hides its value.
SHOW_ALL = "setattr(get_ipython().displayhook, 'quiet', lambda: False)"
LAST_VALUE = "get_ipython().user_ns['_oh'].get(get_ipython().execution_count - 1)"
TASKS_EXTRA = (
    " (`pip install 'pytest-super[tasks]'` installs the packages that the shipped tasks import; "
    "the kernel image has them for docker sandboxes)"
)


class GoldAgent:
    """Runs every cell of the solution to its end. Continues after a cell that raises: it can be intended."""

    def __init__(self, solution: GoldCells, *, has_answer: bool = True, first: int = 0) -> None:
        """A task without an answer grades the work of its cells: null is submitted.

        `first` is the index of the first cell that runs.
        """
        self.solution = solution
        self.has_answer = has_answer
        self.first = first

    def run(self, trial: Trial) -> None:
        """Raises SuperError, naming the first cell that failed, when the answer's cell yields no answer."""
        cells, last = self.solution.cells, self.solution.answer
        steps = [run_to_end(trial, cell) for cell in cells[self.first : last]]
        trial.kernel.evaluate(SHOW_ALL)
        steps.append(run_to_end(trial, cells[last]))
        # Now, because later cells can change it.
        try:
            answer = value_of(trial.kernel, steps[-1]) if self.has_answer else None
        except ValueError as error:
            failure = first_failure(steps, self.first + 1)
            raise SuperError(failure or f"the solution's answer cell has no JSON value: {error}") from None
        for cell in cells[last + 1 :]:
            run_to_end(trial, cell)
        trial.submit(answer)


def value_of(kernel: Kernel, step: Step) -> Any:
    """The JSON value of the last cell: its last expression, or else its whole output. Raises ValueError."""
    value = kernel.evaluate(LAST_VALUE)
    return parse_value(step.observation) if value is None else value


def run_to_end(trial: Trial, cell: str) -> Step:
    step = trial.execute(cell)
    while step.outcome == Outcome.TIMED_OUT:
        step = trial.continue_wait()
    return step


def first_failure(steps: Sequence[Step], first: int = 1) -> str | None:
    """A message about the first cell that failed, or None; `first` is the number of the first step."""
    for number, step in enumerate(steps, start=first):
        if step.outcome != Outcome.OK:
            error = error_of(step)
            hint = TASKS_EXTRA if error.startswith("ModuleNotFoundError") else ""
            return f"the solution yields no answer, because its cell {number} failed: {error}{hint}"
    return None
