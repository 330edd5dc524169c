"""Several runs at the same time, with one folder for their results: none disturbs another."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.stored_runs import Stored, contents, rows

# With a file `meet`, a trial ends only when the same trial of another run has begun.
MEETS = """
import os, time
from pathlib import Path

class Agent:
    def run(self, trial):
        here = Path(__file__).parent
        (here / f"began_{trial.task.id}_{os.getpid()}").touch()
        while (here / "meet").exists() and len(list(here.glob(f"began_{trial.task.id}_*"))) < 2:
            time.sleep(0.02)
        trial.execute("x = 6")
        step = trial.execute("print(x * 7)")
        trial.submit(int(step.observation))
"""


@pytest.fixture
def bench(paid: Stored, tmp_path: Path) -> Stored:
    made = paid.copy(tmp_path / "project")
    (made.path / "conftest.py").unlink()
    (made.path / "broken.task.yaml").unlink()
    made.add("wrong")
    (made.path / "mine.py").write_text(MEETS)
    return made


def run_two(bench: Stored, *options: str) -> list[Path]:
    """The folders of two runs that were under way at the same time."""
    (bench.path / "meet").touch()
    before = set(bench.runs.iterdir())
    command = [sys.executable, "-m", "pytest", "--super-agent=mine:Agent", *options, "."]
    both = [
        subprocess.Popen(command, cwd=bench.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    try:
        told = [process.communicate(timeout=180)[0] for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0, 0], told
    return sorted(set(bench.runs.iterdir()) - before)


@pytest.mark.slow
def test_two_runs_have_each_their_own_results(bench: Stored) -> None:
    both = run_two(bench, "-n1")
    assert len(both) == 2
    for run in both:
        assert json.loads((run / "run.json").read_text())["id"] == run.name
        found = [(row["id"], row["solved"]) for row in map(json.loads, lines(run))]
        assert sorted(found) == [("right", True), ("wrong", True)]
        assert {path.name for path in (run / "trials").glob("*/*")} == {"1.0"}
    assert bench.latest in both


def lines(run: Path) -> list[str]:
    return (run / "results.jsonl").read_text().splitlines()


@pytest.mark.long
def test_one_run_is_resumed_twice_at_once(bench: Stored) -> None:
    bench.pytest()
    first = bench.latest
    before = contents(first)
    bench.add("new")
    for run in run_two(bench, f"--super-resume={first.name}", "-n1"):
        assert {id: (row["resumed_from"], row["solved"]) for id, row in rows(run).items()} == {
            "new": ("", True),
            "right": (first.name, True),
            "wrong": (first.name, True),
        }
        assert len(lines(run)) == 3
    # Both have its files, and nobody has changed them.
    assert contents(first) == before
