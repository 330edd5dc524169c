"""The agent gold: what it submits, and its message for a solution that yields no answer."""

from __future__ import annotations

import pytest

from pytest_super.agents.gold import GoldAgent
from pytest_super.tasks.solution import GoldCells
from tests.unit.test_trial import Bench


def error_of(*cells: str, answer: int = -1) -> str:
    bench = Bench()
    assert bench.run(GoldAgent(GoldCells(list(cells), answer % len(cells))).run) == "agent_error"
    assert bench.trial.error is not None
    return bench.trial.error.strip().splitlines()[-1].partition("SuperError: ")[2]


def test_a_cell_that_raises_may_be_part_of_a_solution() -> None:
    bench = Bench()
    cells = GoldCells(["raise ValueError('no harm')", "6 * 7"], 1)
    assert bench.run(GoldAgent(cells).run) == "submitted"
    assert bench.trial.submission == 42


def test_the_first_cell_that_failed_is_told_with_its_error() -> None:
    error = error_of("x = 1", "raise ValueError('the\\nroot cause')", "y = z", "y")
    assert error == "the solution yields no answer, because its cell 2 failed: ValueError: root cause"
    assert error_of("undefined") == (
        "the solution yields no answer, because its cell 1 failed: NameError: name 'undefined' is not defined"
    )


def test_a_module_that_is_missing_is_told_with_what_installs_it() -> None:
    error = error_of("import surely_not_installed", "surely_not_installed.x")
    assert "cell 1 failed: ModuleNotFoundError: No module named 'surely_not_installed'" in error
    assert "pip install 'pytest-super[tasks]'" in error
    assert "pip install" not in error_of("undefined")


def test_an_answer_that_is_no_json_is_told_where_no_cell_failed() -> None:
    assert error_of("x = 1", "object") == (
        "the solution's answer cell yields a value that is not JSON: \"<class 'object'>\""
    )


@pytest.mark.parametrize("length", [1_000, 100_000])
def test_a_long_error_is_cut(length: int) -> None:
    assert len(error_of(f"raise ValueError('x' * {length})", "y")) < 500
