"""`pytest-super why`: the steps at which trials lost their tasks, in real kernels."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.report.page.render import one_file
from pytest_super.report.page.stored import read_run
from tests.integration.conftest import Folder

pytestmark = pytest.mark.slow

# Does what the task's file says, one cell after the other; the last line is submitted.
AGENT = """
import json
from pathlib import Path

class Agent:
    def run(self, trial):
        *cells, answer = json.loads(Path(f"{trial.task.id}.json").read_text())
        for cell in cells:
            trial.execute(cell)
        trial.submit(answer)
"""
READ, ADD, TELL = (
    "rows = int(open('data.txt').read()); print('read', rows)",
    "total = rows + 32; print('added')",
    "total",
)
TASK = {
    "set": "masked",
    "category": "data",
    "pre_execute": ["open('data.txt', 'w').write('10')"],
    "solution": {"cells": [READ, ADD, TELL]},
    "landmarks": [r"read \d+", "added"],
}
LOOK, SPOIL = "import os; os.listdir()", "open('data.txt', 'w').write('11'); rows = 11"


class LostProject(Folder):
    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.write("agent.py", AGENT)

    def add_lost(self, id: str, *said: Any, **fields: Any) -> None:
        self.add_task(id, **{**TASK, **fields})
        self.write(f"{id}.json", json.dumps(said))

    def run(self, *arguments: str) -> Path:
        self.pytester.runpytest("--super-agent=agent:Agent", "--super-sandbox=local", *arguments)
        return self.latest.resolve()


@pytest.fixture
def lost(pytester: pytest.Pytester) -> LostProject:
    return LostProject(pytester)


def why(run: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["why", str(run), "--sandbox=local", *arguments])
    return status, capsys.readouterr().out


@pytest.mark.long
def test_planted_faults_are_found_at_their_steps(
    lost: LostProject, capsys: pytest.CaptureFixture[str]
) -> None:
    # The number of the prefix's step is 1.
    faults = {f"spoils_{place}": place for place in (1, 3, 6)}
    for id, place in faults.items():
        lost.add_lost(id, *[LOOK] * (place - 1), SPOIL, *[LOOK] * (7 - place), READ, ADD, 43)
    # It was read before it was spoilt, so gold can go on from there.
    lost.add_lost("spoils_what_was_read", LOOK, READ, LOOK, SPOIL, ADD, 43)
    lost.add_lost("dies", READ, "import os; os._exit(1)", LOOK, 43)
    lost.add_lost("submits", READ, ADD, 42.5)
    lost.add_lost("looks", LOOK, LOOK, 0)
    lost.add_lost("solves", READ, ADD, 42)
    status, told = why(lost.run(), capsys, "-n2")
    assert status == 0, told
    lines = dict(re.findall(r"^(\w+)  (.*)$", told, re.MULTILINE))
    for id, place in faults.items():
        assert lines[id].startswith(f"lost at step {place + 1} of 10: gold finishes from the state after ")
    assert lines["spoils_what_was_read"].startswith(
        "lost at step 5 of 6: gold finishes with its cells from 2 on from the state after step 4"
    )
    assert lines["dies"].startswith("lost at step 3 of 4: gold finishes with its cells from 2 on ")
    assert lines["submits"].startswith(
        "not lost: gold finishes with its cells from 3 on from the last state; "
    )
    assert "the answer is 42.5, not 42" in lines["submits"]
    assert lines["looks"].startswith("gold finishes only by doing everything again from the last state, ")
    assert "solves" not in lines
    assert f"  step 5 changed data.txt\n  step 5 was execute: {SPOIL}" in told
    # The page of the trial shows it.
    page = one_file(read_run(lost.latest), "run")
    assert page.count("lost the task here") == len(faults) + 2
    assert "lost at step 4 of 10: gold finishes from the state after step 3" in page


@pytest.mark.long
def test_what_cannot_be_told_has_a_reason(lost: LostProject, capsys: pytest.CaptureFixture[str]) -> None:
    lost.add_lost("no_gold", LOOK, 0, solution=None, landmarks=None)
    lost.add_lost("changed", LOOK, 0)
    lost.add_lost("nothing_stored", LOOK, 0)
    lost.add_lost("scored", LOOK, 0)
    lost.add_lost("wrong_gold", LOOK, 0, solution={"cells": ["41"]}, landmarks=None)
    # Its steps and those of gold together take longer.
    slow = {"cells": [f"import time; time.sleep(1.5); {READ}", ADD, TELL]}
    lost.add_lost("limited", *["import time; time.sleep(0.6)"] * 3, 0, solution=slow, limits={"compute": 3})
    run = lost.run()
    (run / "trials/nothing_stored/1.0/trajectory.jsonl").unlink()
    lost.add_lost("changed", LOOK, 0, query="Another one?")
    lost.add_lost("scored", LOOK, 0, landmarks=["read"])
    status, told = why(run, capsys)
    assert status == 1
    assert "no_gold  cannot tell: its task has no solution\n" in told
    assert "nothing_stored  cannot tell: " in told
    assert "changed  cannot tell: its task has changed since\n" in told
    assert "scored  cannot tell: its task has changed since: it is scored otherwise now\n" in told
    assert "limited  cannot tell: replay and gold together reached a limit of the task (compute)\n" in told
    assert "wrong_gold  cannot tell: gold fails in a fresh sandbox: it does not solve the task\n" in told


def test_gold_is_not_run_alone_where_a_stored_run_has_solved_the_task(
    lost: LostProject, capsys: pytest.CaptureFixture[str]
) -> None:
    lost.add_lost("clock", "import time; int(time.time()) // 1", READ, ADD, 0)
    lost.add_lost("proven", READ, ADD, 0)
    lost.pytester.runpytest("--super-agent=gold", "--super-sandbox=local", "-k", "proven")
    run = lost.run()
    status, told = why(run, capsys)
    assert (status, told.count("not lost: gold finishes with its cells from 3 on")) == (0, 2)
    assert "  not all steps were replayed as recorded: step 2: " in told
    first = lost.path / ".super/why" / run.name / "round-1/runs/latest/results.jsonl"
    assert [json.loads(row)["id"] for row in first.read_text().splitlines()] == ["clock"]


def test_bad_input_is_one_message(lost: LostProject, capsys: pytest.CaptureFixture[str]) -> None:
    lost.add_lost("solves", READ, ADD, 42)
    run = lost.run()
    assert why(run, capsys) == (0, f"{run.name} has no unsolved trial\n")
    assert main(["why", str(run), "nobody"]) == 1
    assert f"{run.name} has no trial of nobody" in capsys.readouterr().err
    assert main(["why", str(lost.path / "nowhere")]) == 1
    assert "there is no run " in capsys.readouterr().err


@pytest.mark.long
def test_a_cell_that_takes_long_and_the_settings_of_the_project_change_nothing(
    lost: LostProject, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = {"cells": [f"import time; time.sleep(2.5); {READ}", ADD, TELL]}
    limits = {"cell": 1}
    for id in ("one", "other"):
        lost.add_lost(id, READ, ADD, 0, solution=slow, limits=limits)
    run = lost.run()
    lost.pytester.makeini("[pytest]\naddopts = -x\nsuper_epochs = 2\nsuper_set = expert\n")
    status, told = why(run, capsys)
    assert status == 0, told
    for id in ("one", "other"):
        assert f"{id}  not lost: gold finishes with its cells from 3 on from the last state; " in told
