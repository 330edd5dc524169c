"""Files of a stored run that are cut anywhere, as by a crash: what is whole counts, and counts once."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.errors import SuperError
from pytest_super.gate.side import side_of_run
from pytest_super.report.page.stored import read_run
from pytest_super.report.stored_runs import row_of, run_lines
from pytest_super.store.json_lines import UNREADABLE
from pytest_super.store.run_folder import RunFolder, last_results
from tests.integration.stored_runs import Stored, contents, folder_of, rows
from tests.stored import a_result, a_run, add_trial

FILES = (
    "results.jsonl",
    "run.json",
    "calls.jsonl",
    "trials/wrong/1.0/trajectory.jsonl",
    "trials/wrong/1.0/result.json",
)
CALL = {"trial": "hang/1.0", "prompt_tokens": 7, "completion_tokens": 3, "cost_usd": 0.5, "seconds": 1.0}


@pytest.fixture(scope="module")
def bench(paid: Stored, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Its run has two epochs of `wrong`, whose answer was mended, and calls of a trial that did not end."""
    made = paid.copy(tmp_path_factory.mktemp("damaged") / "project")
    made.add("wrong")
    run = made.latest
    shutil.copytree(run / "trials/wrong/1.0", run / "trials/wrong/2.0")
    second = rows(run)["wrong"] | {"epoch": 2, "folder": "trials/wrong/2.0"}
    (run / "trials/wrong/2.0/result.json").write_text(json.dumps(second) + "\n")
    with (run / "results.jsonl").open("a") as file:
        file.write(json.dumps(second) + "\n")
    (run / "calls.jsonl").write_text(f"{json.dumps(CALL)}\n" * 3)
    return made


class Cut:
    """A file of the run, cut and then whole again."""

    def __init__(self, path: Path, part: float) -> None:
        self.path, self.whole = path, path.read_bytes()
        self.length = int(part * len(self.whole))

    def __enter__(self) -> None:
        self.path.write_bytes(self.whole[: self.length])

    def __exit__(self, *_: object) -> None:
        self.path.write_bytes(self.whole)


def told(done: CompletedProcess[str]) -> str:
    """What a command said, which is one line if it gave up."""
    assert "Traceback" not in done.stdout + done.stderr
    if not done.stdout:
        assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
@given(part=st.floats(0, 1))
@pytest.mark.parametrize("name", FILES)
def test_every_reader_takes_what_is_whole_once(bench: Stored, name: str, part: float) -> None:
    run = bench.latest
    valid = {one.name: one for one in last_results(run) if one.is_scored}
    side = side_of_run(run)
    with Cut(run / name, part):
        taken = [one for one in last_results(run) if one.is_scored]
        # What the list lacks is in the folder of the trial, and the other way round.
        assert {one.name: one for one in taken} == valid
        assert len(taken) == len(valid)
        with suppress(SuperError):
            found = side_of_run(run)
            assert found.tasks == side.tasks
            assert found.trials <= side.trials
        with suppress(*UNREADABLE):
            _, _, _, trials, solved, _, errors, *_ = row_of(run)
            assert (solved, int(trials) - int(errors)) == ("0.500", 3)
    # Nobody has written into the run.
    assert json.loads((run / "run.json").read_text())["id"] == run.name


@pytest.mark.long
@given(part=st.floats(0, 1))
@pytest.mark.parametrize("name", FILES)
def test_every_command_works_or_says_in_one_line_why_not(bench: Stored, name: str, part: float) -> None:
    run = bench.latest
    whole = contents(run)
    with Cut(run / name, part):
        told(bench.command("runs"))
        told(bench.command("compare", str(run), str(run)))
        updated = bench.command("baseline", "update", str(run), "--file=new.json")
        if updated.returncode == 0:
            tasks = json.loads((bench.path / "new.json").read_text())["tasks"]
            assert {id: task["values"] for id, task in tasks.items()} == {"right": [1.0], "wrong": [0.0, 0.0]}
        told(updated)
        done = bench.rescore()
        if "results: " in told(done):
            scored = [row for row in lines_of(folder_of(done)) if row["error"] is None]
            # A trial whose files are cut has no score; no other one is affected.
            assert {(row["id"], row["epoch"]) for row in scored} >= {("right", 1), ("wrong", 2)}
            assert all(row["solved"] for row in scored)
            assert len({(row["id"], row["epoch"]) for row in scored}) == len(scored)
            shutil.rmtree(folder_of(done))
    assert contents(run) == whole


def lines_of(run: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, (run / "results.jsonl").read_text().splitlines())


def test_calls_that_are_cut_are_not_counted(tmp_path: Path) -> None:
    line = f"{json.dumps(CALL)}\n".encode()
    ends = {len(line) * number + part for number in range(4) for part in (-9, -2, -1, 0, 1, 2, 9)}
    for length in sorted(ends & {*range(3 * len(line) + 1)}):
        folder = tmp_path / str(length)
        started = {"id": "hang", "set": "expert", "category": None, "epoch": 1, "rerun": 0, "agent": "a"}
        (folder / "trials/hang/1.0").mkdir(parents=True)
        (folder / "trials/hang/1.0/result.json").write_text(json.dumps(started))
        (folder / "calls.jsonl").write_bytes((line * 3)[:length])
        run = RunFolder(folder)
        run.sweep("crashed", "it died")
        run.sweep("crashed", "it died")
        [result] = run.final()
        # A line counts without its end, too.
        complete = (length + 1) // len(line)
        assert (result.prompt_tokens, result.cost_usd) == (7 * complete, 0.5 * complete or None), length


OF_THE_PAGE = ("results.jsonl", "run.json", "verdict.json")


@pytest.mark.parametrize("name", ["results.jsonl", "trials/wrong/1.0/result.json", "verdict.json"])
def test_no_command_waits_for_a_pipe_in_place_of_a_file(bench: Stored, tmp_path: Path, name: str) -> None:
    project = bench.copy(tmp_path / "project")
    run = project.latest
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    os.mkfifo(pipe := tmp_path / "baseline.json")
    for words in (
        ("runs",),
        ("compare", run, run),
        ("compare", pipe, run),
        ("baseline", "update", run, "--file=new.json"),
        ("export", run, "--format=csv", f"--output={tmp_path}/new.csv"),
        ("rescore", run, "--tasks=."),
    ):
        told(project.command(*map(str, words)))
    named_on_the_page = [line.split()[0] for line in read_run(run).unread]
    assert named_on_the_page == [name] * (name in OF_THE_PAGE)


@pytest.mark.parametrize("model", [[5], {"a": 5}], ids=repr)
def test_a_run_whose_model_is_no_text_is_listed(tmp_path: Path, model: Any) -> None:
    add_trial(a_run(tmp_path, model=model), a_result())
    listed = list(run_lines(tmp_path))
    assert listed[1].startswith("20261123-101500-ab12")
    assert str(model) in listed[1]
