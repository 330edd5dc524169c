"""The figures of a run and the gate, over results alone."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_super.report.summary import gate_accuracy, groups, is_reached, summarise
from pytest_super.report.terminal import summary_lines
from pytest_super.report.wording import printable
from pytest_super.results import TrialResult


def result(**facts: Any) -> TrialResult:
    given: dict[str, Any] = {
        "id": "t",
        "set": "expert",
        "category": None,
        "epoch": 1,
        "attempt": 1,
        "agent": "a",
    }
    return TrialResult(**{**given, **facts})


def test_errors_are_left_out_of_means_and_counted_apart() -> None:
    group = summarise([result(accuracy=1.0, solved=True), result(accuracy=0.0), result(error="no engine")])
    assert (group.trials, group.errors, group.accuracy, group.solved) == (3, 1, 0.5, 0.5)


def test_a_metric_that_does_not_apply_is_left_out() -> None:
    group = summarise([result(landmarks=0.5), result(landmarks=None)])
    assert (group.landmarks, group.script_executed) == (0.5, None)


def test_the_gate_counts_an_error_as_0_only_where_accuracy_applies() -> None:
    trials = [result(accuracy=1.0), result(error="x", has_answer=True), result(error="x", has_answer=False)]
    assert gate_accuracy(trials) == 0.5
    assert gate_accuracy([result(has_answer=False, set="auto")]) is None


def test_a_mean_that_equals_the_threshold_passes_the_gate() -> None:
    assert is_reached(gate_accuracy([result(accuracy=value) for value in (2 / 5, 1.0, 1.0)]), 0.8)
    assert not is_reached(0.7999, 0.8)
    assert not is_reached(None, 0.0)


def test_groups_are_by_set_and_category_in_order() -> None:
    trials = [result(set="masked", category="data"), result(), result(set="masked", category="cpu")]
    assert [(group.set, group.category) for group in groups(trials)] == [
        ("expert", ""),
        ("masked", "cpu"),
        ("masked", "data"),
    ]


def test_every_attempt_costs_what_it_costs() -> None:
    first = result(attempt=1, prompt_tokens=1000, cost_usd=0.5, error="died")
    last = result(attempt=2, prompt_tokens=10, cost_usd=0.25, accuracy=1.0, solved=True)
    text = "\n".join(summary_lines([last], None, [first, last]))
    assert "tokens 1,010" in text
    assert "cost $0.7500" in text
    assert "1 attempts before the last" in text


@pytest.mark.parametrize("hostile", ["\x1b]0;title\x07", "\x1b[2J", "\r", "\x9b2J", "\u202e", "\ud83d"])
def test_nothing_hostile_reaches_the_terminal(hostile: str) -> None:
    lines = list(summary_lines([result(stop_reason="agent_error", agent_error=f"E: {hostile}")], None, []))
    assert not any(hostile in line for line in lines)
    printable(hostile).encode()


def test_results_cross_processes_even_with_half_a_surrogate_pair() -> None:
    data = result(agent_error="half \ud83d", metrics={"\ud83d": 1.0}).to_data()
    repr(data).encode()
    assert data["agent_error"] == "half \\ud83d"
    assert TrialResult.from_data(data).to_data() == data
