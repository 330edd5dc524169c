"""The registry of metrics: which entries it accepts, and the values that it computes for a trial."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_super.errors import SuperError
from pytest_super.metrics import Evidence, Metric, Spent
from pytest_super.metrics.registry import (
    BUILT_IN,
    PAPER,
    REFERENCE,
    RESERVED,
    checked,
    installed_metrics,
    is_solved,
    score,
    scored,
)
from pytest_super.metrics.suspect import SUSPECT
from pytest_super.report.junit import figures_of_trial
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.task import Task


def task(**fields: Any) -> Task:
    return Task.model_validate({"id": "t", "set": "expert", "query": "q", "answer": [1, 2], **fields})


def metric(name: str = "cost", value: Any = 1.0, **facts: Any) -> Metric:
    return Metric(name=name, compute=lambda *_: value, **facts)


def evidence(submission: Any = (), **facts: Any) -> Evidence:
    """The evidence of a trial that submitted, unless `submission` is left out."""
    return Evidence(steps=[], submission=submission, submitted=submission != (), **facts)


def submit(content: str) -> Step:
    return Step(number=1, origin="agent", action=Action(type="submit", content=content))


# The entries


def test_the_metrics_that_ship_are_the_papers_in_the_order_of_the_columns() -> None:
    names = ["accuracy", "landmarks", "submitted", "script_executed"]
    others = ["graded", "self_report", "suspect"]
    assert [metric.name for metric in installed_metrics()] == [*names, *others]
    assert [metric.heading for metric in BUILT_IN] == [*names[:3], "executed", *others]
    assert {metric.best for metric in BUILT_IN[:-1]} == {1.0}
    assert (SUSPECT.best, SUSPECT.value_of_error, SUSPECT.higher_is_better) == (0.0, 1.0, False)


def test_an_entry_that_only_has_a_name_applies_always_and_is_better_when_higher() -> None:
    only = metric()
    assert only.applies(task())
    assert (only.higher_is_better, only.best, only.value_of_error, only.heading) == (True, None, 0.0, "cost")


@pytest.mark.parametrize(
    ("facts", "value"),
    [({}, 0.0), ({"higher_is_better": False}, float("inf")), ({"worst": -1.0}, -1.0), ({"worst": 0.0}, 0.0)],
)
def test_an_error_has_the_worst_value(facts: dict[str, Any], value: float) -> None:
    assert metric(**facts).value_of_error == value


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ([metric(), metric()], "there are 2 metrics named cost"),
        ([metric("accuracy")], "there are 2 metrics named accuracy"),
        ([metric(headline_of=frozenset({"auto"}))], "there are 2 headlines of the set auto"),
        ([metric("tokens")], "cannot be named tokens"),
        ([metric("F1")], "should be like `failed_cells`"),
        (["cost"], "'cost' is not a pytest_super.metrics.Metric"),
    ],
)
def test_entries_that_cannot_be_used_together_are_refused(more: list[Any], problem: str) -> None:
    with pytest.raises(SuperError, match=problem):
        checked([*BUILT_IN, *more])


def test_no_metric_can_take_the_name_of_another_figure_in_junit_xml() -> None:
    trial = TrialResult(id="t", set="auto", category=None, epoch=1, rerun=0, agent="a")
    assert {name.removeprefix("super.") for name, _ in figures_of_trial(trial, Path())} <= RESERVED


# The values


def test_a_trial_has_a_value_for_each_metric_in_their_order() -> None:
    metrics = [metric("b", None), *BUILT_IN, metric("a", 3)]
    values = score(metrics, task(), evidence([1]))
    assert list(values.items()) == [
        ("b", None),
        ("accuracy", 0.5),
        ("landmarks", None),
        ("submitted", 1.0),
        ("script_executed", None),
        ("graded", None),
        ("self_report", None),
        ("suspect", None),
        ("a", 3.0),
    ]


def test_a_text_is_scored_as_the_json_in_it_where_the_answer_is_no_text() -> None:
    def facts(answer: Any, submission: Any, scoring: str = PAPER) -> list[Any]:
        stored = replace(evidence(submission), steps=[submit(json.dumps(submission))])
        found = scored(BUILT_IN, task(answer=answer), stored, scoring)
        return [found["metrics"]["accuracy"], found["text_read"], found["difference"]]

    assert facts([1, 2], "[1, 3]") == [0.5, True, "[1] is 3, not 2"]
    assert facts(0.5, "0.5") == [1.0, True, ""]
    assert facts("0.5", "0.5") == [1.0, False, ""]
    assert facts([1], "one") == [0.0, False, "[0] is missing, not 1"]
    assert facts([1], ["1"]) == [0.0, False, '[0] is "1", not 1']
    assert facts([1], "[1]", REFERENCE) == [0.0, False, "[0] is missing, not 1"]


def test_null_can_be_submitted() -> None:
    assert score(BUILT_IN, task(answer=[None]), evidence([None]))["accuracy"] == 1.0
    assert score(BUILT_IN, task(), evidence(None))["submitted"] == 1.0
    values = score(BUILT_IN, task(), evidence())
    assert (values["accuracy"], values["submitted"]) == (0.0, 0.0)


def test_a_metric_that_does_not_apply_is_not_computed() -> None:
    def fails(*_: object) -> float:
        raise AssertionError

    never = Metric(name="never", compute=fails, applies=lambda task: task.set == "auto")
    assert score([never], task(), evidence()) == {"never": None}
    auto = Task.model_validate({"id": "t", "set": "auto", "query": "q", "entrypoint": {"path": "a.py"}})
    values = score(BUILT_IN, auto, evidence())
    assert (values["accuracy"], values["script_executed"]) == (None, 0.0)
    with pytest.raises(AssertionError):
        score([never], auto, evidence())


def test_a_metric_sees_what_the_trial_spent() -> None:
    cost = Metric(name="cost", compute=lambda _task, evidence: evidence.spent.cost_usd)
    assert score([cost], task(), evidence(spent=Spent(cost_usd=0.25))) == {"cost": 0.25}
    assert score([cost], task(), evidence()) == {"cost": None}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0.5", 1j, [1.0]])
def test_a_value_that_is_not_a_finite_number_is_refused(value: Any) -> None:
    with pytest.raises(SuperError, match="the metric cost should give a finite number or None, not "):
        score([metric(value=value)], task(), evidence())


def test_under_reference_scoring_the_published_code_computes_what_it_has() -> None:
    stored = Evidence(steps=[submit("[1]")], submission=[1], submitted=True)
    values = score([metric(), *BUILT_IN], task(), stored, scoring="reference")
    expected = {"accuracy": 1.0, "landmarks": None, "submitted": 1, "script_executed": None}
    assert values == {"cost": 1.0, **expected, "graded": None, "self_report": None, "suspect": None}


def test_under_reference_scoring_a_program_beside_the_trial_is_no_step() -> None:
    program = Step(number=2, origin="agent", action=Action(type="host_command", content="agent"))
    stored = Evidence(steps=[submit("[1]"), program], submission=[1], submitted=True)
    assert score(BUILT_IN, task(), stored, scoring="reference")["submitted"] == 1


def test_where_the_published_code_crashes_its_metrics_have_no_value_and_others_have() -> None:
    stored = Evidence(steps=[submit("[1, null]")], submission=[1, None], submitted=True)
    values = score([metric(), *BUILT_IN], task(answer=[1, None]), stored, scoring="reference")
    assert values == {"cost": 1.0, **{one.name: None for one in BUILT_IN}}


@pytest.mark.parametrize(
    ("task_set", "values", "expected"),
    [
        ("expert", {"accuracy": 1.0, "script_executed": 0.0}, True),
        ("masked", {"accuracy": 0.99, "script_executed": 1.0}, False),
        ("functions", {"accuracy": 1.0, "script_executed": None}, True),
        ("auto", {"accuracy": 1.0, "script_executed": 0.0}, False),
        ("auto", {"accuracy": None, "script_executed": 1.0}, True),
        ("auto", {"accuracy": None, "script_executed": None}, False),
    ],
)
def test_a_trial_is_solved_by_the_headline_of_its_set(
    task_set: str, values: dict[str, float | None], expected: bool
) -> None:
    task = Task.model_validate({"id": "t", "set": task_set, "query": "q"})
    others = {"graded": None, "self_report": None, "landmarks": None, "submitted": 1.0}
    assert is_solved(BUILT_IN, task, others | values) == expected


def test_a_grader_decides_instead_of_the_answer() -> None:
    grade = {"collect": "all", "command": "true", "result": [{"exit": 0}]}
    task = Task.model_validate({"id": "t", "set": "expert", "query": "q", "grade": grade})
    scores: dict[str, float | None] = {metric.name: 1.0 for metric in BUILT_IN}
    assert is_solved(BUILT_IN, task, scores | {"accuracy": 0.0})
    assert not is_solved(BUILT_IN, task, scores | {"graded": 0.5})
