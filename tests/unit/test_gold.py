"""The agent gold: what it submits, and its message for a solution that yields no answer."""

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_super.agents.gold import GoldAgent
from pytest_super.kernel.cell import NoValueError
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.tasks.solution import GoldCells
from tests.unit.test_trial import TrialBench


def error_of(*cells: str, answer: int = -1) -> str:
    bench = TrialBench()
    assert bench.run(GoldAgent(GoldCells(list(cells), answer % len(cells))).run) == "agent_error"
    assert bench.trial.error is not None
    return bench.trial.error.strip().splitlines()[-1].partition("SuperError: ")[2]


def test_a_cell_that_raises_may_be_part_of_a_solution() -> None:
    bench = TrialBench()
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
    assert error_of("x = 1", "{'a': {1, 2}}") == (
        "the solution's answer cell has no JSON value: "
        "Object of type set is not JSON serializable: convert it to numbers, texts, lists and dicts"
    )
    assert (
        error_of("x = 1", "y = 2")
        == "the solution's answer cell has no JSON value: neither JSON nor a Python literal: ''"
    )


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with started(LocalSandbox()) as kernel:
        kernel.execute("import numpy as np, pandas as pd")
        yield kernel


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("list(range(3000))", list(range(3000))),
        ("'x' * 300_000", "x" * 300_000),
        ("{'low': -math.inf, 'high': float('inf')}", {"low": -math.inf, "high": math.inf}),
        ("[np.float64(0.5), np.int64(3), np.bool_(True)], 1", [[0.5, 3, True], 1]),
        ("dict(zip(*np.unique([7, 7, 8], return_counts=True)))", {"7": 2, "8": 1}),
        ("{'mean': pd.Series([1, 2]).mean(), 'all': pd.Series([1, 2])}", {"mean": 1.5, "all": [1, 2]}),
        ("np.arange(3000);  # Without a display.", list(range(3000))),
        ("%precision 2\n3.14159", 3.14159),
        ("{1e-5: 0.25, 2: None}", {"1e-05": 0.25, "2": None}),
        ("print('[1, NaN]'.replace('NaN', '2'))", [1, 2]),
    ],
)
def test_the_answer_is_what_the_cell_yields_whatever_its_display(
    kernel: Kernel, cell: str, value: Any
) -> None:
    bench = TrialBench(kernel=kernel, clock=time.monotonic)  # type: ignore[arg-type]
    cells = GoldCells(["import math", cell], 1)
    assert bench.run(GoldAgent(cells).run) == "submitted", bench.trial.error
    assert bench.trial.submission == value
    assert [step.action.type for step in bench.recorded] == ["execute", "execute", "submit"]


def test_a_value_that_the_kernel_forges_or_that_is_too_long_is_refused(kernel: Kernel) -> None:
    for expression, why in (("'x' * 2**23", "not JSON of at most 6 MB"), ("{1}", "type set")):
        with pytest.raises(NoValueError, match=why):
            kernel.evaluate(expression)
    kernel.execute("import base64; encode, base64.b64encode = base64.b64encode, lambda text: b'W1sx' + text")
    with pytest.raises(NoValueError, match="what the kernel reports is not JSON"):
        kernel.evaluate("1")
    kernel.execute("base64.b64encode = encode")
    assert math.isnan(kernel.evaluate("float('nan')"))


@pytest.mark.parametrize("length", [1_000, 100_000])
def test_a_long_error_is_cut(length: int) -> None:
    assert len(error_of(f"raise ValueError('x' * {length})", "y")) < 500
