"""Whether what is left of a run can change its gates."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.gate.fail_under import parse_gate
from pytest_super.gate.must_solve import MustSolve
from pytest_super.gate.verdict import are_settled
from pytest_super.metrics import Metric
from pytest_super.metrics.registry import BUILT_IN
from pytest_super.store.results import TrialResult, epoch_name

METRICS = [*BUILT_IN, Metric(name="points", compute=lambda *_: 1.0)]


def trial(id: str, accuracy: float, epoch: int = 1) -> TrialResult:
    metrics: dict[str, float | None] = {"accuracy": accuracy, "points": 10 * accuracy}
    return TrialResult(
        id=id,
        set="expert",
        category="data",
        epoch=epoch,
        rerun=0,
        agent="a",
        headline="accuracy",
        metrics=metrics,
        applicable=list(metrics),
        solved=accuracy == 1,
        cost_usd=0.5,
    )


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0.0, 1.0])), min_size=1, max_size=5),
    st.lists(st.sampled_from("ab"), max_size=3),
    st.sampled_from(["0.5", "accuracy:0.75", "category.data:0.25"]),
)
def test_a_settled_gate_is_that_of_every_end(
    ended: list[tuple[str, float]], left: list[str], text: str
) -> None:
    results = [trial(id, value, epoch) for epoch, (id, value) in enumerate(ended, 1)]
    names = [epoch_name(id, len(ended) + 1 + number) for number, id in enumerate(left)]
    gate = parse_gate(text, METRICS)
    ends = {
        gate.decide([*results, *(trial(id, value) for id, value in zip(left, values, strict=True))])[0]
        for values in product([0.0, 0.5, 1.0], repeat=len(left))
    }
    is_known = set(left) <= {id for id, _ in ended}
    assert are_settled([gate], METRICS, results, names, None) == (is_known and len(ends) == 1)


@pytest.mark.parametrize(
    ("text", "is_settled"),
    [
        ("0.9", True),
        ("0.4", False),
        # Another trial can cost anything, but never less than nothing.
        ("cost_per_task<0.6", False),
        ("cost_per_task<0.25", True),
        ("tokens_per_task<1000", False),
        # A metric of a project has no best value.
        ("points:9", False),
    ],
)
def test_figures_without_a_bound_settle_what_they_can(text: str, is_settled: bool) -> None:
    results = [trial("a", 0.0), trial("a", 1.0, 2), trial("a", 0.0, 3)]
    assert are_settled([parse_gate(text, METRICS)], METRICS, results, ["a[4]"], None) == is_settled


def test_a_task_that_was_too_rarely_solved_settles_its_gate() -> None:
    gate = MustSolve(name="must.txt", shares={"a": 0.8})
    assert are_settled([gate], METRICS, [trial("a", 0.0)], ["a[2]"], None)
    assert not are_settled([gate], METRICS, [trial("a", 1.0)], ["a[2]"], None)


@pytest.mark.parametrize(("limit", "is_settled"), [(0.3, False), (0.1, True), (0.6, True)])
def test_too_many_errors_settle_a_gate_only_if_they_stay_too_many(limit: float, is_settled: bool) -> None:
    # Valid ones to come make one error of two trials a quarter.
    results = [trial("a", 1.0), replace(trial("a", 0.0, 2), error="no engine", stop_reason="error")]
    gate = parse_gate("0.1", METRICS)
    assert are_settled([gate], METRICS, results, ["a[3]", "a[4]"], limit) == is_settled
