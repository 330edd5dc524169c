"""The gates on plain figures: what they bound, what they refuse, and what they say."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_super.errors import SuperError
from pytest_super.gate import CANNOT_TELL, FAILED, OPEN, PASSED
from pytest_super.gate.baseline import BaselineGate
from pytest_super.gate.fail_under import parse_gate
from pytest_super.gate.must_solve import MustSolve, read_must_solve
from pytest_super.gate.side import side_of
from pytest_super.gate.verdict import GateVerdict, RunGates, RunVerdict
from pytest_super.metrics.registry import BUILT_IN
from pytest_super.option_types import Epochs
from pytest_super.store.results import TrialResult
from tests.unit.test_summary import cost, result


def verdicts(
    results: list[TrialResult], *gates: str, max_errors: float | None = None, not_run: int = 0
) -> list[str]:
    parsed = [parse_gate(text, [*BUILT_IN, cost()]) for text in gates]
    whole = RunGates(epochs=Epochs(1, 1), plain=parsed, max_errors=max_errors)
    return list(whole.verdict(results, not_run=not_run, epoch=1).lines)


def gate_passes(text: str, *values: float) -> bool:
    trials = [result(accuracy=value, metrics={"accuracy": value, "cost": value}) for value in values]
    return parse_gate(text, [*BUILT_IN, cost()]).decide(trials)[0] == PASSED


@pytest.mark.parametrize(
    ("text", "values", "is_passed"),
    [
        ("0.8", (2 / 5, 1.0, 1.0), True),
        ("0.8", (0.7999,), False),
        ("0", (0.0,), True),
        ("1", (1.0,), True),
        ("0", (), False),
        ("accuracy:0.5", (0.5,), True),
        ("accuracy:0.5", (0.4,), False),
        ("landmarks:0", (1.0,), False),
        ("cost<0.5", (0.4,), True),
        ("cost<0.5", (0.5,), False),
        ("cost<0.8", (2 / 5, 1.0, 1.0), False),
        ("cost<2", (1.0, 2.5), True),
        ("cost<0", (), False),
    ],
)
def test_the_gate_bounds_the_mean_of_a_metric(text: str, values: tuple[float, ...], is_passed: bool) -> None:
    assert gate_passes(text, *values) == is_passed


FORMS = "must be NUMBER, NAME:NUMBER or NAME<NUMBER"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2", "must be between 0 and 1"),
        ("-0.1", "must be between 0 and 1"),
        ("nan", FORMS),
        ("high", FORMS),
        ("accuracy=0.5", FORMS),
        ("cost<inf", FORMS),
        ("cost<", FORMS),
        (
            "f1:0.5",
            "no such figure: choose from accuracy, landmarks, submitted, script_executed, graded, "
            "self_report, suspect, cost, cost_per_task, tokens_per_task, category.NAME",
        ),
        ("cost:0.5", "lower is better: write 'cost<0.5'"),
        ("accuracy<0.5", "higher is better: write 'accuracy:0.5'"),
        ("cost_per_task:1", "lower is better: write 'cost_per_task<1'"),
        ("category.data<1", "higher is better: write 'category.data:1'"),
        ("category.:1", "no such figure"),
    ],
)
def test_a_gate_that_cannot_be_meant_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SuperError) as refused:
        parse_gate(text, [*BUILT_IN, cost()])
    assert str(refused.value).startswith(f"--super-fail-under={text}: ")
    assert problem in str(refused.value)


def test_a_gate_bounds_a_category_and_what_a_task_uses() -> None:
    trials = [
        result(category="data", accuracy=1.0, headline="accuracy", cost_usd=0.2, prompt_tokens=100),
        result(category="data", headline="accuracy", error="the engine died", cost_usd=0.4),
        result(category="goal", accuracy=0.0, headline="accuracy", weight=3.0),
    ]
    gates = (
        "category.data:0.5",
        "category.goal:0.1",
        "category.cpu:0",
        "cost_per_task<0.3",
        "tokens_per_task<34",
    )
    assert verdicts(trials, *gates, max_errors=1.0)[-5:] == [
        "gate: passed, mean category.data 0.5000 is at least 0.5",
        "gate: FAILED, mean category.goal 0.0000 is under 0.1",
        "gate: FAILED, no trial has a value of category.cpu",
        "gate: FAILED, mean cost_per_task 0.3000 is not below 0.3",
        "gate: passed, mean tokens_per_task 33.3333 is below 34",
    ]


def test_a_gate_whose_trials_have_not_all_ended_is_open() -> None:
    told = ["gate: open, the run has no mean accuracy of all trials"]
    assert verdicts([result(accuracy=1.0, solved=True)], "0.5", not_run=3) == told
    stopped = result(id="b", stop_reason="interrupted", error="interrupted: Ctrl-C")
    assert verdicts([result(accuracy=1.0, solved=True), stopped], "0.5") == told


def errors_among(errors: int, trials: int) -> list[TrialResult]:
    return [result(id=f"t{index}", error="x" if index < errors else None) for index in range(trials)]


@pytest.mark.parametrize(
    ("errors", "trials", "max_errors", "told"),
    [
        (1, 20, None, ""),
        (1, 19, None, "1 of 19 trials are infrastructure errors, more than 5 %, "),
        (3, 25, None, "3 of 25 trials are infrastructure errors, more than 5 %, "),
        (3, 25, 0.12, ""),
        (29, 100, 0.29, ""),
        (1, 100, 0.0, "1 of 100 trials are infrastructure errors, more than 0 %, "),
        (2, 2, 1.0, ""),
        (0, 0, None, ""),
    ],
)
def test_more_errors_than_the_limit_make_the_figures_invalid(
    errors: int, trials: int, max_errors: float | None, told: str
) -> None:
    again = f"invalid: {told}so the run fails: run them again (--super-resume=latest)"
    assert verdicts(errors_among(errors, trials), max_errors=max_errors) == [again][: bool(told)]


def test_a_gate_on_invalid_figures_cannot_tell() -> None:
    found = verdicts([result(accuracy=1.0), result(id="b", error="x")], "0.5")
    assert found == [
        "invalid: 1 of 2 trials are infrastructure errors, more than 5 %, so the run fails: "
        "run them again (--super-resume=latest)",
        "gate: cannot tell, too many trials are infrastructure errors",
    ]


def test_trials_that_the_end_of_the_run_stopped_make_no_figure_invalid() -> None:
    stopped = [result(id=reason, error="x", stop_reason=reason) for reason in ("interrupted", "run_cost")]
    assert verdicts([result(accuracy=1.0), *stopped]) == []


def must_solve(tmp_path: Path, text: str) -> MustSolve:
    (tmp_path / "must.txt").write_text(text)
    return read_must_solve(tmp_path / "must.txt")


def test_each_named_task_must_be_solved_in_its_share_of_epochs(tmp_path: Path) -> None:
    trials = [
        result(id=id, epoch=epoch, solved=solved, error=error)
        for id, epoch, solved, error in [
            ("a", 1, True, None),
            ("a", 2, False, None),
            ("b", 1, True, None),
            ("b", 2, True, None),
            ("c", 1, True, None),
            ("c", 2, False, "the engine died"),
        ]
    ]
    gate = must_solve(tmp_path, "# Never lose these.\nb\na 0.5\n\n")
    assert gate.decide(trials) == (PASSED, "the tasks of must.txt are solved")
    gate = must_solve(tmp_path, "a\nb  # always\nc\nd 0.1\n")
    assert gate.decide(trials) == (
        FAILED,
        "of must.txt too rarely solved: a in 1 of 2, c in 1 of 2, d in 0 of 0",
    )


def test_the_chance_of_red_with_nothing_changed_is_that_of_the_baselines_rates() -> None:
    # Ten tasks of rate .97, each to be solved in all of three epochs.
    gate = MustSolve(name="must.txt", shares={**dict.fromkeys("abcdefghij", 1.0), "unknown": 1.0})
    rates = dict.fromkeys("abcdefghij", [1.0] * 97 + [0.5] * 3)
    assert gate.chance_of_red(rates, 3) == pytest.approx(1 - 0.97**30)
    two = MustSolve(name="must.txt", shares={"a": 2 / 3})
    assert two.chance_of_red({"a": [1.0, 0.0]}, 3) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "names no task"),
        ("a 2", "must.txt:1: 2: must be a number between 0 and 1"),
        ("\na b c", "must.txt:2: "),
    ],
)
def test_a_bad_file_of_tasks_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SuperError) as error:
        must_solve(tmp_path, text)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ([], ""),
        ([PASSED, PASSED], "passed"),
        ([PASSED, CANNOT_TELL], "cannot tell"),
        ([OPEN, CANNOT_TELL], "open"),
        ([PASSED, FAILED, OPEN], "failed"),
    ],
)
def test_of_several_gates_the_worst_decides(words: list[str], word: str) -> None:
    assert RunVerdict(invalid="", gates=[GateVerdict(one, "so") for one in words]).word == word


def test_a_run_that_is_worse_than_the_anchor_ends_although_the_baseline_cannot_tell() -> None:
    epochs = [(f"t{number}", epoch) for number in range(12) for epoch in (1, 2)]
    trials = [result(id=id, epoch=epoch, headline="accuracy", accuracy=epoch - 1.0) for id, epoch in epochs]
    solved = [replace(one, metrics={"accuracy": 1.0}) for one in trials]
    old, release = (side_of("old", {}, of) for of in (trials, solved))
    same = BaselineGate(side=old, margin=0.1, must_tell=False, run="new", subject={}, sides=2)
    gates = RunGates(epochs=Epochs(2, 3), baseline=same, anchor=replace(same, side=release, is_anchor=True))
    words = [gate.word for gate in gates.verdict(trials, not_run=0, epoch=2).gates]
    assert words == [CANNOT_TELL, FAILED]
    assert gates.is_decided(trials, [], 2)
    assert not replace(gates, anchor=None).is_decided(trials, [], 2)
