import math
from dataclasses import replace
from typing import Any

import pytest

from pytest_super.metrics.reference import (
    ReferenceScores,
    ReferenceScoringError,
    reference_accuracy,
    reference_landmarks,
    reference_scores,
    reference_script_executed,
)
from pytest_super.store.trajectory import Action, Origin, Step

TASK = {"id": "t", "set": "expert", "query": "do it", "answer": {"a": 1}, "entrypoint": {"path": "train.py"}}
BOTH = {"acc": 0.6, "f1": 0.75}


def step(
    content: str,
    *,
    type: str = "execute",
    origin: Origin = "agent",
    observation: str = "",
    seconds: float = 20.0,
) -> Step:
    action = Action(type=type, content=content)
    return Step(number=1, origin=origin, action=action, observation=observation, seconds=seconds)


@pytest.mark.parametrize(
    ("gold", "submission", "expected"),
    [
        (BOTH, {"acc": 0.6}, 1.0),
        (BOTH, {**BOTH, "x": 1, "y": 2}, 0.5),
        ([1, 2, 3, 4], [1], 1.0),
        ([1, 2], [1, 2, 3, 4], 0.5),
        ([{"id": i, "acc": 0.5} for i in range(10)], [{"id": 0, "acc": 0.5}], 1.0),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1}}}, 1.0),
    ],
)
def test_the_divisor_is_the_submission_s_at_even_depth(gold: Any, submission: Any, expected: float) -> None:
    assert reference_accuracy(gold, submission) == expected


def test_the_mean_is_taken_group_by_group() -> None:
    gold = {"LogMe": 218.22, "matched": {"a": 1, "b": 2, "c": 3}, "mismatched": {"a": 1, "b": 2, "c": 3}}
    assert reference_accuracy(gold, {**gold, "LogMe": 0.0}) == 2 / 3
    assert reference_accuracy(gold, {**gold, "matched": {"a": 0, "b": 0, "c": 0}}) == 2 / 3


@pytest.mark.parametrize("pair", [(0.60, 0.61), (0.50, 0.49), (1.0, 0.99), (0.01, 0.0), (math.nan, math.nan)])
def test_a_difference_of_the_tolerance_itself_is_wrong(pair: tuple[float, float]) -> None:
    assert reference_accuracy(*pair) == 0.0


@pytest.mark.parametrize(("gold", "submission"), [(1, 1.005), ("a ", " a"), (5, 5), (2.0, 2)])
def test_scalars_are_compared(gold: Any, submission: Any) -> None:
    assert reference_accuracy(gold, submission) == 1.0


@pytest.mark.parametrize(
    ("gold", "submission"), [(1, True), (1, "1"), (1.0, None), ({"a": 1}, [1]), (math.inf, math.inf)]
)
def test_what_the_types_or_infinity_keep_apart_is_wrong(gold: Any, submission: Any) -> None:
    assert reference_accuracy(gold, submission) == 0.0


@pytest.mark.parametrize("gold", [0, 0.0, False, "", {}, [], None])
def test_a_falsy_gold_has_no_accuracy(gold: Any) -> None:
    assert reference_accuracy(gold, gold) is None


@pytest.mark.parametrize("submission", ["0", "0.0", "false", '""', "{}", "[]", "null"])
def test_a_falsy_submission_was_not_submitted(submission: str) -> None:
    scores = reference_scores([step(submission, type="submit")], answer={"a": 1})
    assert (scores.submitted, scores.accuracy) == (0, 0.0)


@pytest.mark.parametrize(
    ("gold", "submission"), [(True, True), ({"a": None}, {"a": None}), ({"a": {}}, {"a": {}}), (1, 10**400)]
)
def test_where_the_published_scorer_dies_so_says_ours(gold: Any, submission: Any) -> None:
    with pytest.raises(ReferenceScoringError, match="the published scorer crashes"):
        reference_accuracy(gold, submission)


def test_nesting_deeper_than_the_stack_kills_it() -> None:
    gold: Any = 1
    for _ in range(5000):
        gold = [gold]
    with pytest.raises(ReferenceScoringError):
        reference_accuracy(gold, gold)


def test_landmarks_are_searched_with_only_line_feeds_made_blank() -> None:
    assert reference_landmarks(["training done metrics"], ["training done\nmetrics"]) == 1.0
    assert reference_landmarks(["training done metrics"], ["training done\r\nmetrics"]) == 0.0
    assert reference_landmarks(["done", "never"], ["d\x1b[0mone", "done"]) == 0.5
    assert reference_landmarks(["^b", "a$"], ["a\nb"]) == 0.0
    assert reference_landmarks([], ["a"]) is None


def test_a_landmark_that_is_no_pattern_kills_it() -> None:
    with pytest.raises(ReferenceScoringError, match="crashes on a landmark"):
        reference_landmarks(["*** done ***"], ["done"])


@pytest.mark.parametrize(
    ("taken", "path"),
    [
        (step("!cat train.py; sleep 11"), "src/train.py"),
        (step("train.py\n<<<BEFORE_EDIT>>>", type="edit"), "train.py"),
        (step("!python other/train.py"), "src/train.py"),
        (step("!bash run.sh", observation="bash: run.sh: No such file or directory"), "run.sh"),
        (step("!python train.py", observation="Killed"), "train.py"),
        (step("!python train.py", origin="pre_execute"), "train.py"),
        (step("!python train.py", seconds=10.0), "train.py"),
        (step('{"train.py": 1}', type="submit"), "train.py"),
    ],
)
def test_an_entrypoint_is_executed_by_a_mention_that_took_ten_seconds(taken: Step, path: str) -> None:
    assert reference_script_executed([taken], path) == 1.0


@pytest.mark.parametrize(
    "taken",
    [
        step("!python train.py", observation="a harmless Traceback, logged"),
        step("!python train.py", observation="train.py: error: unrecognized arguments"),
        step("!python train.py", seconds=9.99),
        step("!python other.py"),
        step("null", type="submit"),
    ],
)
def test_what_it_excludes(taken: Step) -> None:
    assert reference_script_executed([taken], "train.py") == 0.0


@pytest.mark.parametrize(("ended", "expected"), [("00:00:10.000000", 1.0), ("00:00:09.999999", 0.0)])
def test_a_step_takes_as_long_as_its_times_say(ended: str, expected: float) -> None:
    taken = replace(
        step("train.py", type="edit", seconds=0),
        started="2024-01-01T00:00:00.000000+00:00",
        ended=f"2024-01-01T{ended}+00:00",
    )
    assert reference_script_executed([taken], "train.py") == expected


def test_a_number_submitted_before_any_success_kills_it() -> None:
    submit = step("0.93", type="submit")
    with pytest.raises(ReferenceScoringError, match=r"0\.93"):
        reference_script_executed([submit], "train.py")
    assert reference_script_executed([step("!python train.py"), submit], "train.py") == 1.0


def test_an_entrypoint_of_another_kind_has_no_score() -> None:
    assert reference_script_executed([step("!papermill x.ipynb")], "x.ipynb") is None
    assert reference_script_executed([step("!python train.py")], None) is None


@pytest.mark.parametrize("command", ["agent --task query.md", "agent --edit train.py"])
def test_what_a_program_ran_is_not_known_here_either(command: str) -> None:
    program = step(command, type="command")
    assert reference_script_executed([program], "train.py") is None
    assert reference_script_executed([program, step("!python other.py")], "train.py") is None
    assert reference_script_executed([program, step("!python train.py")], "train.py") == 1.0
    assert reference_script_executed([program], "x.ipynb") is None


def test_a_program_that_was_refused_or_over_too_soon_hides_nothing_here_either() -> None:
    refused = replace(step("agent", type="command", seconds=0), outcome="error")
    assert reference_script_executed([refused, step("!python other.py")], "train.py") == 0.0
    assert reference_script_executed([step("agent", type="command", seconds=9.9)], "train.py") == 0.0


def test_all_metrics_of_a_trial() -> None:
    steps = [
        step("!python train.py", origin="pre_execute", observation="done"),
        step('{"a": 1}', type="submit"),
    ]
    scores = reference_scores(steps, answer={"a": 1.0}, landmarks=["done", "x"], entrypoint="train.py")
    assert scores == ReferenceScores(submitted=1, accuracy=1.0, landmarks=0.5, script_executed=1.0)
    with pytest.raises(ReferenceScoringError, match="without steps"):
        reference_scores([])
