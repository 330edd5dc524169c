"""`pytest-super verify --cheat`: which ways to a score without the work stay open, in real kernels."""

import json
from typing import Any

import pytest

from pytest_super.authoring.verify.cheating.cheats import CHEATS
from pytest_super.cli import main
from tests.integration.conftest import Folder, read_lines
from tests.integration.test_papers import PAPER, RUN, STATS

pytestmark = pytest.mark.slow

# What they gain where nothing keeps them out.
GRADED = {"results_at_exit", "table_of_values"}


class CheatedProject(Folder):
    def __init__(self, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(pytester)
        self.capsys = capsys

    def cheat(self, workers: str = "-n2") -> tuple[int, str]:
        self.capsys.readouterr()
        status = main(["verify", "--cheat", "tasks", "--sandbox=local", workers, "--json=found.json"])
        return status, self.capsys.readouterr().out

    @property
    def overlooked(self) -> list[str]:
        """The cheats of the last run whose trials lack the sign that the table names."""
        folder = self.path / ".super/verify/cheat"
        tries = json.loads((folder / "tries.json").read_text())
        rows = read_lines(folder / "runs/latest/results.jsonl")
        kinds = {
            tries[row["id"]][row["epoch"] - 1]["cheat"]: {sign["kind"] for sign in row["integrity"]}
            for row in rows
        }
        return [name for name, found in kinds.items() if not {CHEATS[name].sign} <= found | {""}]

    @property
    def open(self) -> set[str]:
        findings = json.loads((self.path / "found.json").read_text())["findings"]
        assert {one["kind"] for one in findings} <= {"open"}
        return {one["text"].split()[1] for one in findings}

    def add_paper(self, **of_experiments: Any) -> None:
        self.write("tasks/project/stats.py", STATS)
        self.write("tasks/project/run.py", RUN)
        self.write("tasks/paper.md", "Right in 97 percent.")
        experiments = [{**one, **of_experiments.get(one["name"], {})} for one in PAPER["experiments"]]
        self.write("tasks/stats.task.yaml", json.dumps({**PAPER, "experiments": experiments}))


@pytest.fixture
def cheated(pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> CheatedProject:
    return CheatedProject(pytester, capsys)


@pytest.mark.long
def test_hidden_variations_close_every_way_to_the_values_of_a_paper(cheated: CheatedProject) -> None:
    cheated.add_paper()
    status, told = cheated.cheat()
    assert status == 1
    # Whether a process that is left prints last depends on the machine.
    assert cheated.open - {"results_afterwards"} == GRADED
    assert " closed, 2 seen, " in told
    assert cheated.overlooked == []
    assert "open for 1 task: table_of_values (graded): Returns the right values for the known calls" in told
    assert "To close it, let it run on other data, too, as by `vary` of a paper" in told
    varied = {"command": "python run.py 2 4 9"}
    cheated.add_paper(
        averages={"vary": [{**varied, "expected": {"json": {"mean": 5.0, "total": 15}}}]},
        spread={"vary": [{**varied, "expected": {"regex": 4.0}}]},
    )
    status, told = cheated.cheat()
    assert (status, cheated.open) == (0, set())
    assert "2205.00048_0,1,2: 11 cheats: 11 closed" in told


@pytest.mark.long
def test_ways_to_an_answer_to_landmarks_and_to_a_run_of_the_script(cheated: CheatedProject) -> None:
    script = "import sys, time\nsys.argv[1:] and sys.exit(2)\ntime.sleep(1.5)\nprint('loss', 1 / 8)\n"
    cheated.write("tasks/repo/train.py", script)
    cheated.add_task(
        "trains",
        category="goal",
        repository={"path": "repo", "provide": True},
        answer=0.125,
        landmarks=[r"loss [\d.]+"],
        entrypoint={"path": "train.py", "min_seconds": 1},
        solution={"cells": ["!python repo/train.py", "1 / 8"]},
    )
    status, told = cheated.cheat()
    assert status == 0
    assert cheated.overlooked == []
    assert cheated.open == set()
    assert "cannot be closed for 1 task: remembered_answer (accuracy): " in told
    assert "Instead, grade by running (`grade`), because a number can be remembered" in told
    assert "cannot be closed for 1 task: encoded_landmarks (landmarks): " in told
    assert "trains: 12 cheats: 6 closed, 4 seen, 2 cannot be closed" in told


def test_cheats_with_nothing_to_act_with_are_named(cheated: CheatedProject) -> None:
    cheated.add_task("unsolved", landmarks=["done"])
    _, told = cheated.cheat("-n0")
    assert "1 cannot be closed, 4 not tried (commented_landmarks, encoded_landmarks, " in told


def test_a_task_that_its_own_solution_fails_tells_nothing(cheated: CheatedProject) -> None:
    cheated.add_task("fails", category="goal", solution={"cells": ["41"]})
    status, told = cheated.cheat("-n0")
    assert (status, told) == (1, "fails: its solution does not solve it: the answer is 41, not 42\n")


def test_each_cheat_says_what_it_does_and_what_closes_it() -> None:
    assert len(CHEATS) >= 20
    assert all(cheat.does.endswith(".") and cheat.closing for cheat in CHEATS.values())
