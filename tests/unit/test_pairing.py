"""Which trials of a candidate are paired with which of its baseline."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_super.gate.comparison.baseline_answers import archive_of, write_answers
from pytest_super.gate.comparison.errors import with_errors
from pytest_super.gate.comparison.pairing import is_coupled, pair_of
from pytest_super.gate.comparison.side import Side, TaskTrials, side_of
from pytest_super.store.answers import FILE, AnswerStore
from pytest_super.store.json_lines import to_line
from pytest_super.store.results import folder_name
from tests.stored import a_result


def task(values: list[float], epochs: list[int] | None = None) -> TaskTrials:
    return TaskTrials(
        set="expert", conditions="c", scoring="s", weight=1.0, values=values, epochs=epochs or []
    )


def side(name: str, trials: TaskTrials, errors: int = 0, answers: str = "") -> Side:
    return Side(
        name=name,
        run=name,
        subject={},
        tasks={"a": trials},
        trials=len(trials.values) + errors,
        errors={"a": errors} if errors else {},
        answers=answers,
    )


@pytest.mark.parametrize(
    ("baseline", "candidate", "expected"),
    [
        # A file numbers its values from 1.
        (task([0.1, 0.2, 0.3]), task([0.7, 0.8], [1, 2]), ([0.1, 0.2, 0.3], [0.7, 0.8], 2)),
        # Epoch 2 of the one and epoch 1 of the other ended with an error.
        (task([0.1, 0.3], [1, 3]), task([0.8, 0.9], [2, 3]), ([0.3, 0.1], [0.9, 0.8], 1)),
        # Trials of an earlier run come first, and have none.
        (task([0.1, 0.2], [1, 2]), task([0.5, 0.7, 0.8], [0, 1, 2]), ([0.1, 0.2], [0.7, 0.8, 0.5], 2)),
        (task([0.1], [1]), task([0.9], [2]), ([0.1], [0.9], 0)),
    ],
    ids=["file", "errors", "earlier", "none"],
)
def test_trials_of_one_epoch_are_pairs(
    baseline: TaskTrials, candidate: TaskTrials, expected: tuple[list[float], list[float], int]
) -> None:
    pair = pair_of(baseline, candidate, is_coupled=True)
    assert (pair.baseline, pair.candidate, pair.paired) == expected
    apart = pair_of(baseline, candidate, is_coupled=False)
    assert (sorted(apart.baseline), apart.paired) == (sorted(baseline.values), 0)
    assert pair_of(baseline, candidate, is_coupled=True, is_run=False).paired == 0


def test_only_the_answers_of_the_baseline_itself_couple() -> None:
    old, new = side("old", task([1.0])), side("new", task([1.0], [1]))
    assert not is_coupled(old, new)
    assert is_coupled(old, replace(new, answers="old"))
    assert not is_coupled(old, replace(new, answers="another"))


def test_errors_stand_behind_the_pairs() -> None:
    old = side("old", task([0.1, 0.2], [1, 2]), errors=1)
    new = side("new", task([0.9], [2]), errors=2, answers="old")
    worst, _ = with_errors(old, new, ["a"])
    [pair] = worst["expert"]
    assert (pair.baseline, pair.candidate, pair.paired) == ([0.2, 0.1, 1.0], [0.9, 0.0, 0.0], 1)


def test_a_stored_run_knows_the_epochs_of_its_own_trials() -> None:
    results = [
        a_result(epoch=2),
        a_result(epoch=1, error="no engine"),
        a_result(epoch=3, resumed_from="other"),
    ]
    found = side_of("run", {}, results).tasks["mean"]
    assert (found.epochs, found.by_epoch) == ([0, 2], {2: 1})
    # With recorded answers, which are those of the same record.
    taken = side_of("run", {}, [a_result(epoch=3, resumed_from="other", recorded=2)]).tasks["mean"]
    assert taken.by_epoch == {3: 0}


def test_the_answers_of_further_runs_are_numbered_like_their_values(tmp_path: Path) -> None:
    run = tmp_path / "new"
    results = [a_result(epoch=1, resumed_from="old"), a_result(epoch=2), a_result(epoch=3)]
    for one in results:
        (run / folder_name(one)).mkdir(parents=True)
        (run / folder_name(one) / FILE).write_text(f"epoch {one.epoch}")
    (run / "results.jsonl").write_text("".join(to_line(one.to_data()) for one in results))
    (run / "run.json").write_text(json.dumps({"id": "new", "model": "m"}))
    baseline, before = tmp_path / "baseline.json", side("old", task([1.0]))
    # The baseline has the trial that was taken over, and its own first one is not in the archive.
    assert write_answers(baseline, before, run, {"mean": 1}, {"old"}) == 2
    assert AnswerStore(archive_of(baseline)).facts()["id"] == "old"
    with zipfile.ZipFile(archive_of(baseline)) as file:
        texts = {name: file.read(name) for name in file.namelist() if name != "run.json"}
    assert texts == {"trials/mean/2.0/answers.jsonl": b"epoch 2", "trials/mean/3.0/answers.jsonl": b"epoch 3"}
