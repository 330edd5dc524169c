"""Programs in the sandbox: what is known of their end."""

from __future__ import annotations

from typing import Any

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.tasks.task import Limits
from pytest_super.testing import FakeKernel
from pytest_super.trial.budget import Budget
from pytest_super.trial.program import Program


class LateEnd(FakeKernel):
    """Reports the value of a cell, and only with the next result that the cell has ended."""

    def execute(self, *_: Any, **__: Any) -> CellResult:
        value = {"output_type": "execute_result", "data": {"text/plain": "3"}, "metadata": {}}
        return CellResult(outcome=Outcome.TIMED_OUT, outputs=[value])

    def wait(self, *_: Any, **__: Any) -> CellResult:
        return CellResult(outcome=Outcome.OK)


def test_the_exit_code_counts_when_it_comes_before_the_end_of_the_cell() -> None:
    budget = Budget(Limits(compute=60), tokens=1)
    kernel: Any = LateEnd()
    ran = Program(kernel, budget, None).run("exit 3", {}, {}, lambda _: None)
    assert (ran.exit_code, ran.note) == (3, "[The program ended with exit code 3.]")
