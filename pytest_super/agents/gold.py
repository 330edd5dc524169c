"""The gold agent: runs the solution and submits its answer, which proves task and harness."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.kernel.cell import Outcome

if TYPE_CHECKING:
    from pytest_super.solution import GoldCells
    from pytest_super.trajectory import Step
    from pytest_super.trial import Trial


class GoldAgent:
    """Runs every cell of the solution to its end; a cell that raises may be part of it."""

    def __init__(self, solution: GoldCells) -> None:
        self.solution = solution

    def run(self, trial: Trial) -> None:
        answer: Step | None = None
        for index, cell in enumerate(self.solution.cells):
            step = trial.execute(cell)
            while step.outcome == Outcome.TIMED_OUT:
                step = trial.continue_wait()
            if index == self.solution.answer:
                answer = step
        assert answer is not None
        trial.submit(value_of(answer))


def value_of(step: Step) -> Any:
    """The JSON value that a cell yields: its last expression, else all that it printed.

    Raises SuperError when that is neither JSON nor a Python literal.
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
    raise SuperError(f"the solution's answer cell yields no JSON value but: {text[:200]!r}")
