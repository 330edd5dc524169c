"""Stored runs scored anew: the outcome is a run that every other command reads."""

import json
import shutil
from pathlib import Path

import pytest

from tests.integration.stored_runs import Stored, contents, folder_of, rows


@pytest.fixture
def bench(paid: Stored, tmp_path: Path) -> Stored:
    return paid.copy(tmp_path / "project")


def test_a_mended_answer_gives_a_new_run_and_leaves_the_paid_one(bench: Stored) -> None:
    before, old = contents(bench.latest), rows(bench.latest)
    bench.add("wrong")
    done = bench.rescore()
    assert done.returncode == 0, done.stderr
    new = folder_of(done)
    assert done.stdout.splitlines()[-3:] == [
        "changed wrong: accuracy 0.000 -> 1.000, steps_taken 2.000 -> -, solved",
        "2 trials scored again, 1 changed, 1 error; solved 0.500 -> 1.000",
        f"results: {new}",
    ]
    assert contents(bench.latest) == before
    assert bench.latest.name != new.name
    facts = json.loads((new / "run.json").read_text())
    assert (facts["id"], facts["rescored"]) == (new.name, bench.latest.name)
    assert facts["arguments"] == ["rescore", ".super/runs/latest", "--tasks=.", "--write"]
    found = rows(new)
    assert (found["wrong"]["solved"], found["wrong"]["difference"]) == (True, "")
    assert found["wrong"]["scoring"] != old["wrong"]["scoring"]
    for id in ("broken", "right"):
        assert found[id] == {**old[id], "resumed_from": bench.latest.name}
    for row in found.values():
        folder = new / row["folder"]
        assert json.loads((folder / "result.json").read_text()) == row
        assert (folder / "trajectory.jsonl").exists()
    assert "accuracy 1" in (new / found["wrong"]["folder"] / "trajectory.ipynb").read_text()


def test_a_run_that_was_scored_again_is_resumed(
    bench: Stored, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = bench.latest.name
    bench.add("wrong")
    new = bench.rescored()
    monkeypatch.chdir(bench.path)
    bench.write("ran.txt", "")
    options = ("--super-agent=mine:Agent", "--super-dir=.super", f"--super-resume={new.name}", ".")
    again = pytester.runpytest(*options)
    assert (bench.path / "ran.txt").read_text() == "broken "
    told = f"resume: 2 trials reused from {new.name}, 1 trial to run: nothing valid*"
    # The other run has run them.
    again.stdout.fnmatch_lines([told, f"2 trials reused from {paid}*"])
    assert rows(bench.latest)["wrong"]["solved"]


@pytest.mark.slow
def test_a_run_that_was_scored_again_is_compared_and_listed_and_a_baseline(
    bench: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Infrastructure failures would decide.
    (bench.path / "broken.task.yaml").unlink()
    (bench.latest / "results.jsonl").write_text(
        "".join(f"{json.dumps(row)}\n" for id, row in rows(bench.latest).items() if id != "broken")
    )
    shutil.rmtree(bench.latest / "trials/broken")
    assert bench.command("baseline", "update", str(bench.latest), "--file=old.json").returncode == 0
    bench.add("wrong")
    new = bench.rescored()
    compared = bench.command("compare", "old.json", str(new))
    assert compared.returncode == 0, compared.stderr
    assert "left out, scored otherwise (answer, grader or metric): wrong" in compared.stdout
    assert "expert      1     1.000      1.000    +0.0" in compared.stdout
    assert bench.command("baseline", "update", str(new)).returncode == 0
    gated, ran = bench.pytest("--super-baseline=baseline.json")
    assert ran == "right wrong"
    assert "expert      2     1.000      1.000    +0.0" in gated.stdout
    monkeypatch.setenv("COLUMNS", "200")
    listed = bench.command("runs").stdout.splitlines()
    [row] = [line.split() for line in listed if line.startswith(new.name)]
    assert row[3:] == ["2", "1.000", "1.000", "0", "-", "-"]
    # Scored again once more, nothing changes.
    assert (
        "2 trials scored again, 0 changed"
        in bench.command("rescore", str(new), "--tasks=.", "--write").stdout
    )


def test_a_stored_folder_leads_to_no_other_files(bench: Stored) -> None:
    private = bench.path / "private"
    private.mkdir()
    (private / "key.txt").write_text("secret")
    listed = bench.latest / "results.jsonl"
    listed.write_text(listed.read_text().replace('"trials/broken/1.0"', '"../../../private"'))
    new = bench.rescored()
    assert rows(new)["broken"]["folder"] == "trials/broken/1.0"
    assert not list(new.rglob("key.txt"))


def test_a_task_with_other_conditions_is_named_and_left_out(bench: Stored) -> None:
    bench.add("wrong", query="And what is this?")
    done = bench.rescore()
    assert done.returncode == 1
    assert "left out wrong: its conditions differ from those of the trial (query, " in done.stdout
    assert rows(folder_of(done)).keys() == {"broken", "right"}
    assert done.stdout.splitlines()[-2].startswith("1 trial scored again, 0 changed, 1 error, 1 left out")


def test_no_run_is_written_of_nothing(bench: Stored) -> None:
    for id in ("wrong", "right"):
        bench.add(id, query="And what is this?")
    before = contents(bench.runs)
    done = bench.rescore()
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("pytest-super: no run is written, because no trial of ")
    assert contents(bench.runs) == before


@pytest.mark.parametrize("paths", [["trials"], ["", "trials/right"]])
def test_a_new_run_is_made_of_one_run(bench: Stored, paths: list[str]) -> None:
    done = bench.command("rescore", *(f".super/runs/latest/{path}" for path in paths), "--write", "--tasks=.")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "--write needs the folder of one run" in done.stderr


def test_a_new_landmark_that_can_be_in_unstored_output_is_not_missed(bench: Stored) -> None:
    bench.add("right", landmarks=["all done", "in the middle"])
    assert rows(bench.rescored())["right"]["metrics"]["landmarks"] == 0.5
    path = bench.latest / "trials/right/1.0/trajectory.jsonl"
    steps = [json.loads(line) for line in path.read_text().splitlines()]
    steps[0]["omitted_characters"] = 7
    path.write_text("".join(f"{json.dumps(step)}\n" for step in steps))
    row = rows(bench.rescored())["right"]
    assert row["metrics"]["landmarks"] is None
    assert row["solved"]


def test_scores_of_a_killed_run_are_those_of_the_trials_that_had_ended(bench: Stored) -> None:
    first, *_ = (bench.latest / "results.jsonl").read_text().splitlines(keepends=True)
    (bench.latest / "results.jsonl").write_text(first + '{"id": "rig')
    bench.add("wrong")
    found = rows(bench.rescored())
    assert {id: row["solved"] for id, row in found.items()} == {"broken": False, "right": True, "wrong": True}
