"""The gold agent: runs the solution and submits its answer, which tests the task and the harness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.kernel.cell import Outcome
from pytest_super.store.step_values import error_of, value_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.solution import GoldCells
    from pytest_super.trial.trial import Trial

GOLD = "gold"
"""Its name."""
TASKS_EXTRA = (
    " (`pip install 'pytest-super[tasks]'` installs the packages that the shipped tasks import; "
    "the kernel image has them for docker sandboxes)"
)


class GoldAgent:
    """Runs every cell of the solution to its end. Continues after a cell that raises: it can be intended."""

    def __init__(self, solution: GoldCells, *, has_answer: bool = True, first: int = 0) -> None:
        """Without an answer the work of the cells is graded, and null is submitted.

        `first` is the index of the first cell that runs.
        """
        self.solution = solution
        self.has_answer = has_answer
        self.first = first

    def going_on(self, first: int) -> GoldAgent:
        """An agent that runs the cells from this index on."""
        return GoldAgent(self.solution, has_answer=self.has_answer, first=first)

    def run(self, trial: Trial) -> None:
        """Raises SuperError, naming the first cell that failed, when the answer's cell yields no answer."""
        steps = [run_to_end(trial, cell) for cell in self.solution.cells[self.first :]]
        trial.submit(self.answer_in(steps) if self.has_answer else None)

    def answer_in(self, steps: Sequence[Step]) -> Any:
        try:
            return value_of(steps[self.solution.answer - self.first])
        except ValueError as error:
            why = first_failure(steps, self.first + 1) or f"the solution's answer cell yields {error}"
            raise SuperError(why) from None


def run_to_end(trial: Trial, cell: str) -> Step:
    step = trial.execute(cell)
    while step.outcome == Outcome.TIMED_OUT:
        step = trial.continue_wait()
    return step


def first_failure(steps: Sequence[Step], first: int = 1) -> str | None:
    """A message about the first cell of the solution that failed, or None.

    `first` is the number of the first one of these.
    """
    for number, step in enumerate(steps, start=first):
        if step.outcome != Outcome.OK:
            error = error_of(step)
            hint = TASKS_EXTRA if error.startswith("ModuleNotFoundError") else ""
            return f"the solution yields no answer, because its cell {number} failed: {error}{hint}"
    return None
