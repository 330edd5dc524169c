"""The figures of a run and the gate, over results alone."""

import json
import re
import traceback
from collections.abc import Iterable
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.metrics import Metric
from pytest_super.metrics.accuracy import ACCURACY
from pytest_super.metrics.means import mean_with_errors
from pytest_super.metrics.registry import BUILT_IN
from pytest_super.report.failure_line import describe
from pytest_super.report.summary import Agreement, Group, agreements, columns, rows
from pytest_super.report.terminal import summary_lines
from pytest_super.store.results import TrialResult
from pytest_super.words import printable


def result(*, error: str | None = None, **facts: Any) -> TrialResult:
    """A result whose metrics are those among `facts`. All built-in metrics apply to its task."""
    metrics = {metric.name: facts.pop(metric.name, None) for metric in BUILT_IN}
    given = {"id": "t", "set": "expert", "category": None, "epoch": 1, "rerun": 0, "agent": "a"}
    known = {"error": error, "metrics": metrics, "applicable": list(metrics)}
    return TrialResult(**{**given, **known, **facts})


def group(*results: TrialResult) -> Group:
    return Group(results=results)


def solved(group: Group) -> float | None:
    [field] = [field for field in columns() if field.name == "solved"]
    return group.mean_of_field(field)


def lines(results: list[TrialResult], **facts: Any) -> list[str]:
    given: dict[str, Any] = {"metrics": BUILT_IN, "runs": results}
    return list(summary_lines(results, **{**given, **facts}))


def cost(**facts: Any) -> Metric:
    return Metric(**{"name": "cost", "compute": lambda *_: 1.0, "higher_is_better": False, **facts})


def test_errors_are_left_out_of_means_and_counted_apart() -> None:
    found = group(result(accuracy=1.0, solved=True), result(accuracy=0.0), result(error="no engine"))
    assert (found.trials, found.errors, found.mean("accuracy"), solved(found)) == (3, 1, 0.5, 0.5)


def test_a_metric_that_does_not_apply_is_left_out() -> None:
    found = group(result(landmarks=0.5), result(landmarks=None))
    assert (found.mean("landmarks"), found.mean("script_executed")) == (0.5, None)
    assert (solved(group()), group().mean("accuracy")) == (None, None)


def test_an_error_counts_as_0_only_where_the_metric_applies() -> None:
    trials = [result(accuracy=1.0), result(error="x"), result(error="x", applicable=["submitted"])]
    assert mean_with_errors(trials, ACCURACY) == 0.5
    assert mean_with_errors([result(error="x", applicable=[])], ACCURACY) is None


def test_a_set_with_several_categories_has_a_row_of_its_own_below_them() -> None:
    trials = [
        result(),
        result(set="masked", category="data", accuracy=0.0),
        result(set="masked", category="cpu", accuracy=1.0),
        result(set="masked", category="cpu", accuracy=1.0),
    ]
    assert [(row.set, row.category, row.trials) for row in rows(trials)] == [
        ("expert", "", 1),
        ("masked", "cpu", 2),
        ("masked", "data", 1),
        ("masked", "all", 3),
    ]
    assert rows(trials)[-1].mean("accuracy") == pytest.approx(2 / 3)


# The table


def test_the_table_has_a_column_for_each_metric_under_its_title() -> None:
    metrics = [ACCURACY, cost(title="US dollars", format=".1f"), cost(name="tokens_used", format=",.0f")]
    trials = [
        result(metrics={"accuracy": 0.5, "cost": 1.25, "tokens_used": 12345.0}, solved=True),
        result(set="auto", error="no engine"),
    ]
    assert lines(trials, metrics=metrics)[:4] == [
        "set     category  n  solved  accuracy  US dollars  tokens_used  errors",
        "auto    -         1       -         -           -            -       1",
        "expert  -         1   1.000     0.500         1.2       12,345       0",
        "all     -         2   1.000     0.500         1.2       12,345       1",
    ]


WIDE = Metric(name="a_metric_with_a_name_longer_than_any", compute=lambda *_: 1.0)


@given(
    names=st.lists(st.text("abc-", min_size=1, max_size=40), min_size=1, max_size=4),
    width=st.integers(80, 200),
    epochs=st.integers(1, 2),
)
def test_the_table_fits_the_terminal_and_has_every_column(names: list[str], width: int, epochs: int) -> None:
    metrics = [*BUILT_IN, WIDE]
    trials = [
        result(set="functions", category=name, epoch=epoch, metrics={one.name: 0.5 for one in metrics})
        for name in names
        for epoch in range(1, epochs + 1)
    ]
    told = lines(trials, metrics=metrics, width=width)
    table = told[: next(index for index, line in enumerate(told) if line.startswith("compute"))]
    assert max(map(len, table)) <= width
    heads = "  ".join(line for line in table if line.startswith("set "))
    columns = "n solved accuracy landmarks submitted executed graded self_report suspect"
    shown = [*columns.split(), "a_metric_with_a_name_lo…", "errors"]
    assert [head for head in heads.split() if head not in ("set", "category")] == shown


def test_a_table_that_is_too_wide_goes_on_below_and_long_names_are_cut() -> None:
    trials = [result(category="a-category-whose-name-is-long", accuracy=0.5, submitted=1.0)]
    assert lines(trials, width=80)[:7] == [
        "set     category                  n  solved  accuracy  landmarks  submitted",
        "expert  a-category-whose-name-i…  1   0.000     0.500          -      1.000",
        "all     -                         1   0.000     0.500          -      1.000",
        "",
        "set     category                  executed  graded  self_report  errors",
        "expert  a-category-whose-name-i…         -       -            -       0",
        "all     -                                -       -            -       0",
    ]


def test_each_task_counts_in_means_by_its_weight() -> None:
    trials = [result(accuracy=1.0, solved=True, weight=3.0), result(id="u", accuracy=0.0)]
    assert (group(*trials).mean("accuracy"), solved(group(*trials))) == (0.75, 0.75)
    assert mean_with_errors(trials, ACCURACY) == 0.75


def epoch_trials(*epochs: Iterable[float | None]) -> list[TrialResult]:
    """Trials of the tasks t0, t1, … in each epoch, with these accuracies; None is an error."""
    return [
        result(id=f"t{index}", epoch=number, accuracy=value, error="no engine" if value is None else None)
        for number, values in enumerate(epochs, 1)
        for index, value in enumerate(values)
    ]


def test_each_task_counts_alike_however_many_of_its_trials_have_a_value() -> None:
    trials = [
        result(id="a", epoch=1, accuracy=1.0, solved=True),
        *(result(id="b", epoch=epoch, accuracy=0.0) for epoch in (1, 2, 3)),
        result(id="a", epoch=2, error="the engine died"),
    ]
    assert group(*trials).mean("accuracy") == solved(group(*trials)) == 0.5
    assert mean_with_errors(trials, ACCURACY) == 0.25


def test_the_deviation_is_the_sample_deviation_of_the_means_of_the_epochs() -> None:
    found = group(*epoch_trials([0.0, 1.0], [1.0, 1.0], [0.0, 0.5]))
    assert found.mean("accuracy") == pytest.approx(fmean([0.5, 1.0, 0.25]))
    assert found.deviation("accuracy") == pytest.approx(stdev([0.5, 1.0, 0.25]))
    assert found.deviation("landmarks") is None


def test_agreement_is_with_more_than_half_of_the_landmarks_and_with_full_accuracy() -> None:
    trials = [
        result(script_executed=1.0, landmarks=0.6, accuracy=0.6),
        result(script_executed=1.0, landmarks=0.5, accuracy=1.0),
        result(script_executed=0.0, landmarks=0.4, accuracy=0.5),
        result(script_executed=0.0, landmarks=None, accuracy=None),
        result(script_executed=None, landmarks=1.0, accuracy=1.0),
    ]
    both = Agreement(trials=3, share=2 / 3)
    assert agreements(group(*trials)) == {"landmarks": both, "accuracy": both}
    assert (
        "script_executed agrees with landmarks > 0.5 in 67 % of 21 trials, "
        "with accuracy 1 in 67 % of 21 trials"
    ) in lines(trials * 7)
    assert "agrees" not in "\n".join(lines(trials * 6))


def test_a_task_without_an_answer_is_no_miss() -> None:
    found = 'submitted {"a": 1}: if it is right, copy it into `answer`'
    open_one = result(cause="the task has no answer yet", difference=found, stop_reason="submitted")
    (line,) = [line for line in lines([open_one]) if "copy it" in line]
    assert line.startswith(f"unknown {open_one.name}: ")
    assert f"the task has no answer yet; {found}; " in line


def test_interrupted_trials_and_those_that_did_not_begin_are_counted_and_no_errors() -> None:
    stopped = [
        result(id=name, stop_reason="interrupted", error="interrupted: Ctrl-C", prompt_tokens=5, folder=name)
        for name in ("b", "c")
    ]
    trials = [result(accuracy=1.0, solved=True), *stopped]
    told = lines(trials, not_run=3)
    assert told[1].split()[2:5] == ["1", "1.000", "1.000"]
    assert told[1].split()[-1] == "0"
    assert told[-3:] == [
        "stopped b: interrupted: Ctrl-C (b)",
        "stopped c: interrupted: Ctrl-C (c)",
        "2 interrupted, 3 not run: the means are over 1 of 6 trials",
    ]
    assert "tokens 10" in "".join(told)
    assert "accuracy with errors" not in "".join(told)


@pytest.mark.parametrize(("repeats", "is_told"), [(9, False), (10, True)])
def test_an_agent_that_repeated_itself_is_told_of(repeats: int, is_told: bool) -> None:
    told = describe(result(stop_reason="steps", repeats=repeats))
    assert (f"repeated one action with one observation {repeats} times" in told) is is_told


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\r", "\u202e", "\ud83d"])
def test_nothing_hostile_reaches_the_terminal(hostile: str) -> None:
    trials = [result(stop_reason="agent_error", agent_error=f"E: {hostile}")]
    assert not any(hostile in line for line in lines(trials))
    printable(hostile).encode()


def test_only_trials_that_ran_without_isolation_are_told_of() -> None:
    def note(*isolated: bool | None) -> bool:
        trials = [result(isolated=value) for value in isolated]
        return "not isolated" in "\n".join(lines(trials))

    assert [note(True, None), note(True, False)] == [False, True]


def test_what_fails_after_a_trial_is_one_line_beside_its_figures() -> None:
    trials = [result(accuracy=1.0, solved=True)]
    told = lines(trials, afterwards={"t": "no engine\nat all"})
    assert told[-1] == "trouble t: after the trial: no engine | at all"


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
def test_what_an_agent_raised_is_told_by_its_type_and_first_line(error: Exception, shown: str) -> None:
    told = describe(result(stop_reason="agent_error", agent_error=traceback_of(error, KeyError("why"))))
    frames = r"(; test_summary\.py:\d+ in traceback_of)+"
    assert re.search(rf"the agent raised \({re.escape(shown)}{frames}\)$", told)


def test_the_frames_of_an_agents_error_are_its_own_and_not_those_of_libraries() -> None:
    def parse() -> None:
        json.loads("{")

    def run() -> None:
        parse()

    try:
        run()
    except ValueError:
        error = traceback.format_exc()
    assert len(error.split("File ")) > 5
    told = describe(result(stop_reason="agent_error", agent_error=error))
    assert re.search(r"\(JSONDecodeError: [^;]*(; test_summary.py:\d+ in [a-z_]+){3}\)$", told)
    assert "in run; " in told
    assert "in parse)" in told


@pytest.mark.parametrize(
    ("process", "told"),
    [
        (None, "no run of the script was seen"),
        ({"seconds": None, "status": None, "changed": None}, "{} and had not ended"),
        (
            {"seconds": 2.04, "status": 0, "changed": True},
            "train.py, changed, ran as repo/sub/train.py for 2.0 s, exit code 0",
        ),
        ({"seconds": 12.0, "status": 3 << 8, "changed": False}, "{} for 12.0 s, exit code 3"),
        (
            {"seconds": 0.31, "status": 0, "changed": False, "min_seconds": 0.5},
            "{} for 0.3 s, and needs 0.5 s",
        ),
        ({"seconds": 12.0, "status": 9, "changed": None}, "{} for 12.0 s, signal 9"),
        ({"seconds": 12.0, "status": None, "changed": None}, "{} for 12.0 s, status unknown"),
    ],
)
def test_a_script_that_does_not_count_as_executed_is_told_with_how_it_ran(
    process: dict[str, Any] | None, told: str
) -> None:
    run = process and {**process, "script": "repo/sub/train.py"}
    missed = result(script_executed=0.0, stop_reason="submitted", entrypoint_process=run)
    why = told.format("train.py ran as repo/sub/train.py")
    assert describe(missed) == f"script_executed 0; submitted; {why}"
    assert "ran as" not in describe(replace(missed, metrics={"script_executed": 1.0}))


SUSPECT_SIGN = {"kind": "echoed output", "step": 2, "evidence": "Epoch 9", "is_suspect": True}
NOTE = {"kind": "shared sandbox", "step": None, "evidence": "graded there", "is_suspect": False}


def test_the_score_without_suspect_trials_is_shown_and_their_signs_are_named() -> None:
    trials = [
        result(id="a", accuracy=0.5, suspect=0.0, integrity=[]),
        result(id="b", accuracy=1.0, suspect=1.0, integrity=[SUSPECT_SIGN, NOTE], solved=True),
        result(id="c", accuracy=0.0, suspect=0.0, integrity=[NOTE]),
        result(id="older", accuracy=0.5),
    ]
    told = lines([replace(trial, headline="accuracy") for trial in trials])
    assert "suspect" in told[0]
    assert "look twice: 2 shared sandbox, 1 echoed output" in told
    assert "1 suspect trial: accuracy 0.500, 0.333 without" in told
    assert [line for line in told if line.startswith("suspect ")] == [
        "suspect b: echoed output, step 2: Epoch 9"
    ]


def test_trials_of_a_task_that_missed_alike_have_one_line() -> None:
    trials = [
        result(epoch=1, accuracy=0.0, folder="t-1"),
        result(epoch=2, accuracy=0.5, folder="t-2"),
        result(epoch=3, accuracy=0.0, folder="t-3"),
        result(epoch=4, accuracy=0.0, folder="t-4"),
        result(id="u", accuracy=0.0, folder="u-1"),
        result(epoch=5, error="no engine", folder="t-5"),
    ]
    told = [line for line in lines(trials) if line.startswith(("missed", "error"))]
    assert [line.partition(":")[0] for line in told] == [
        "error   t[5]",
        "missed  t and 2 further epochs",
        "missed  t[2]",
        "missed  u",
    ]
    assert told[1].endswith("t-1/trajectory.ipynb")
