"""The figures of a run and the gate, over results alone."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from pytest_super.report.summary import gate_accuracy, groups, is_reached, summarise
from pytest_super.report.terminal import summary_lines
from pytest_super.report.wording import describe, printable
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
    assert "1 attempt before the last" in text


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


def test_only_trials_that_ran_without_isolation_are_told_of() -> None:
    def note(*isolated: bool | None) -> bool:
        trials = [result(isolated=value) for value in isolated]
        return "not isolated" in "\n".join(summary_lines(trials, None, trials))

    assert [note(True, None), note(True, False)] == [False, True]


def test_what_fails_after_a_trial_is_one_line_beside_its_figures() -> None:
    trials = [result(accuracy=1.0, solved=True)]
    lines = list(summary_lines(trials, 1.0, trials, {"t": "no engine\nat all"}))
    assert lines[-2:] == [
        "trouble t: after the trial: no engine | at all",
        "gate: passed, mean accuracy 1.0000 is at least 1",
    ]


class AgentError(Exception):
    """An agent's own."""


def traceback_of(error: BaseException, cause: BaseException | None = None) -> str:
    try:
        raise error from cause
    except BaseException as raised:
        return "".join(traceback.format_exception(raised))


INNER = traceback_of(ValueError("within"))


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError("first: line\nsecond\n\nlast"), "ValueError: first: line"),
        (ValueError(), "ValueError"),
        (AgentError("a.b: c"), "AgentError: a.b: c"),
        (AgentError(f"the cell failed:\n{INNER}"), "AgentError: the cell failed:"),
        (SyntaxError("no end", ("agent.py", 1, 2, "a b", 1, 3)), "SyntaxError: no end"),
        (ExceptionGroup("many", [ValueError("x")]), "ExceptionGroup: many (1 sub-exception)"),
    ],
)
@pytest.mark.parametrize("cause", [None, KeyError("why")])
def test_what_an_agent_raised_is_told_by_its_type_and_first_line(
    error: Exception, cause: Exception | None, shown: str
) -> None:
    told = describe(result(stop_reason="agent_error", agent_error=traceback_of(error, cause)))
    assert f"the agent raised ({shown});" in told
