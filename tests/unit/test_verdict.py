"""Whatever came of a run: its exit status, its stored verdict and its reports say the same."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_super.gate.baseline import BaselineGate
from pytest_super.gate.fail_under import parse_gate
from pytest_super.gate.must_solve import MustSolve
from pytest_super.gate.side import Side, side_of
from pytest_super.gate.verdict import RunGates
from pytest_super.metrics.registry import BUILT_IN
from pytest_super.option_types import Epochs
from pytest_super.session.controller.controller import exit_status
from pytest_super.store.results import TrialResult
from pytest_super.store.verdict import VERDICT, read_word, write_verdict
from tests.stored import a_result

EPOCHS = 3
KINDS: dict[str, dict[str, Any]] = {
    "solved": {"accuracy": 1.0},
    "missed": {"accuracy": 0.0},
    "error": {"error": "the engine died", "solved": False, "stop_reason": "error"},
    "interrupted": {"error": "interrupted: Ctrl-C", "solved": False, "stop_reason": "interrupted"},
    "stopped": {"error": "the run has cost $2", "solved": False, "stop_reason": "run_cost"},
}
PLAIN = [
    *(
        parse_gate(text, BUILT_IN)
        for text in ("0.5", "landmarks:0", "category.data:0.9", "cost_per_task<0.1")
    ),
    replace(parse_gate("landmarks:0", BUILT_IN), must_apply=False),
    MustSolve(name="must.txt", shares={"t0": 1.0}),
]


def trials_of(kinds: list[str]) -> list[TrialResult]:
    return [
        a_result(f"t{number // EPOCHS}", epoch=number % EPOCHS + 1, **KINDS[kind])
        for number, kind in enumerate(kinds)
    ]


def baseline_of(values: list[float], *, must_tell: bool) -> BaselineGate:
    sides = [
        a_result(f"t{number}", accuracy=value, epoch=epoch)
        for number, value in enumerate(values)
        for epoch in range(1, 6)
    ]
    side: Side = side_of("main", {}, sides)
    return BaselineGate(side=side, margin=0.2, must_tell=must_tell, run="new", subject={})


KINDS_OF_RUN = st.lists(st.sampled_from(sorted(KINDS)), max_size=12) | st.lists(
    st.sampled_from(["solved", "solved", "solved", "missed", "error"]), min_size=6, max_size=24
)
GATES = st.builds(
    RunGates,
    epochs=st.just(Epochs(EPOCHS, EPOCHS)),
    plain=st.lists(st.sampled_from(PLAIN), max_size=2),
    baseline=st.none()
    | st.builds(
        baseline_of, st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8), must_tell=st.booleans()
    ),
    max_errors=st.sampled_from([None, 0.0, 0.3, 1.0]),
)


@given(kinds=KINDS_OF_RUN, gates=GATES, not_run=st.sampled_from([0, 0, 1, 3]))
@example(kinds=["solved"], gates=RunGates(epochs=Epochs(EPOCHS, EPOCHS), max_errors=1.0), not_run=0)
@example(
    kinds=["solved"],
    gates=RunGates(epochs=Epochs(EPOCHS, EPOCHS), baseline=baseline_of([1.0], must_tell=True)),
    not_run=0,
)
def test_exit_status_and_stored_verdict_agree(kinds: list[str], gates: RunGates, not_run: int) -> None:
    verdict = gates.verdict(trials_of(kinds), not_run=not_run, epoch=EPOCHS)
    with TemporaryDirectory() as name:
        write_verdict(Path(name), verdict.to_data())
        word, stored = read_word(Path(name)), json.loads((Path(name) / VERDICT).read_text())

    # The reports read one verdict.
    shown = [line for line in verdict.lines if not line.startswith("invalid: ")]
    assert (word, stored["invalid"]) == (verdict.facts["verdict"], verdict.facts["invalid"])
    assert stored["gates"] == shown
    assert stored["regression"].keys() == {
        name.removeprefix("regression.").removesuffix(".points").removesuffix(".not_run")
        for name in verdict.facts
        if name.startswith("regression.")
    }
    also = {"passed": "PASS", "failed": "REGRESSED", "cannot tell": "NO COLLAPSE"}.get(word, word)
    assert any(one.upper() in line.upper() for one in (word, also) for line in shown) == bool(word)

    # A success is one in every respect.
    must_tell = gates.baseline is not None and gates.baseline.must_tell
    passing = {"", "passed"} if must_tell else {"", "passed", "cannot tell"}
    allowed = gates.max_errors is not None and not stored["invalid"]
    errors = len(kinds) - kinds.count("solved") - kinds.count("missed")
    is_good = word in passing and (allowed or not errors) and (word != "" or "missed" not in kinds)
    for status, only_errors, has_trouble in product(pytest.ExitCode, (False, True), (False, True)):
        found = exit_status(status, verdict, only_errors=only_errors, has_trouble=has_trouble)
        is_excused = status == pytest.ExitCode.TESTS_FAILED and allowed and only_errors
        if status == pytest.ExitCode.OK or is_excused:
            succeeds = is_good and not has_trouble
            assert found == (pytest.ExitCode.OK if succeeds else pytest.ExitCode.TESTS_FAILED)
        else:
            assert found == status


@given(kinds=KINDS_OF_RUN, gates=GATES, not_run=st.sampled_from([0, 2]))
def test_a_gate_is_open_while_trials_are_missing(kinds: list[str], gates: RunGates, not_run: int) -> None:
    verdict = gates.verdict(trials_of(kinds), not_run=not_run, epoch=EPOCHS)
    is_missing = bool(not_run) or "interrupted" in kinds or "stopped" in kinds
    assert {gate.word == "open" for gate in verdict.gates} <= {is_missing}
    assert not (is_missing and verdict.gates) or verdict.fails
