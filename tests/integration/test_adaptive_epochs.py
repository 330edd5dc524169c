"""Runs with a range of epochs, which end once their gates are decided."""

import json
from pathlib import Path
from typing import Any

import pytest

# pytester forgets what a run has imported, and numpy refuses to be imported twice.
from tests.integration.conftest import Project

# Always solves four tasks, never the last four, and those between in every second of their epochs.
AGENT = """
import os, signal
from itertools import count
from pathlib import Path

def take(task_id):
    for number in count():
        try:
            (Path(__file__).parent / f"{task_id}.{number}").touch(exist_ok=False)
            return number
        except FileExistsError:
            continue

class Half:
    def run(self, trial):
        place, number = int(trial.task.id[1:]), take(trial.task.id)
        trial.submit(42 if place < 4 or place < 8 and number % 2 == 0 else 0)

class Worse:
    def run(self, trial):
        trial.submit(0)

# Its worker dies in the first trial.
class Crashes(Worse):
    def run(self, trial):
        if take("crash") == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        super().run(trial)

# Notes that enough is known.
class Forges(Worse):
    def run(self, trial):
        for run in (Path(__file__).parent / ".super/runs").glob("2*"):
            (run / "decided.json").write_text('{"epochs": 1, "proof": "it is mine"}')
        super().run(trial)
"""
TASKS = [f"t{number}" for number in range(12)]
GATE = ("--super-baseline=baseline.json", "--super-max-regression=15", "--super-epochs=adaptive")


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """With a baseline of ten epochs, of which one was run."""
    made = Project(pytester, skilled=AGENT)
    for id in TASKS:
        made.add_task(id)
    made.run(agent="skilled:Half")
    assert made.command("baseline", "update", ".super/runs/latest").returncode == 0
    repeat(made.path / "baseline.json")
    return made


def repeat(baseline: Path) -> None:
    data = json.loads(baseline.read_text())
    for id, task in data["tasks"].items():
        place = int(id[1:])
        task["values"] = [float(place < 4 or (place < 8 and epoch % 2 == 0)) for epoch in range(10)]
    baseline.write_text(json.dumps(data))


def run(project: Project, agent: str, *options: str) -> pytest.RunResult:
    for path in (*project.path.glob("t*.*"), *project.path.glob("crash.*")):
        path.unlink()
    return project.run(*options, agent=f"skilled:{agent}")


def stored(project: Project) -> list[dict[str, Any]]:
    lines = (project.path / ".super/runs/latest/results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_run_ends_after_the_epoch_that_decides(project: Project) -> None:
    result = run(project, "Half", *GATE)
    assert result.ret == pytest.ExitCode.OK
    assert len(stored(project)) == 3 * len(TASKS)
    result.stdout.fnmatch_lines([
        "expert: 1 to 7 epochs (at most 52 trials) against baseline.json: 80 % chance to see a drop of *",
        "expert  -         36 *",
        "expert     12     0.500      0.556    +5.6 *",
        "decided after 3 epochs: 16 of 52 trials were not needed",
    ])  # fmt: skip
    assert result.outlines[-1].startswith("PASS  expert ")
    decided = project.path / ".super/runs/latest/decided.json"
    assert json.loads(decided.read_text())["epochs"] == 3


@pytest.mark.slow
def test_a_worse_agent_is_found_out_early(project: Project) -> None:
    result = run(project, "Worse", *GATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(stored(project)) == len(TASKS)
    result.stdout.fnmatch_lines(["decided after 1 epoch: 40 of 52 trials were not needed"])
    assert result.outlines[-1].startswith("REGRESSED  expert ")


@pytest.mark.slow
def test_a_run_that_cannot_tell_runs_all_epochs(project: Project) -> None:
    options = ("--super-baseline=baseline.json", "--super-max-regression=1", "--super-epochs=2-4")
    result = run(project, "Half", *options)
    assert result.ret == pytest.ExitCode.OK
    # The noisy tasks four times, the others twice.
    assert len(stored(project)) == 4 * 4 + 8 * 2
    assert result.outlines[-1].startswith("CANNOT TELL  expert ")
    result.stdout.no_fnmatch_line("*not needed*")


@pytest.mark.slow
def test_a_range_begins_with_its_least_epochs(project: Project) -> None:
    options = ("--super-baseline=baseline.json", "--super-max-regression=15")
    result = run(project, "Half", *options, "--super-epochs=3-8")
    assert result.ret == pytest.ExitCode.OK
    assert len(stored(project)) == 3 * len(TASKS)
    epochs = "3 to 7 epochs (at most 52 trials)"
    result.stdout.fnmatch_lines([f"expert: {epochs} against baseline.json: 80 % chance *"])


@pytest.mark.slow
def test_workers_stop_too(project: Project) -> None:
    result = run(project, "Worse", *GATE, "-n2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    counted = [one for one in stored(project) if one["epoch"] <= 1]
    assert len(counted) == len(TASKS)
    # What has begun meanwhile runs to its end: a trial or two of each worker.
    assert len(stored(project)) <= len(counted) + 4
    result.stdout.fnmatch_lines(["decided after 1 epoch: *", "REGRESSED  expert *"])


@pytest.mark.slow
def test_a_worker_that_dies_holds_no_look_up(project: Project) -> None:
    result = run(project, "Crashes", *GATE, "-n2")
    result.stdout.fnmatch_lines(["decided after 1 epoch: *", "REGRESSED  expert *"])
    assert len(stored(project)) <= len(TASKS) + 6


def test_what_an_agent_writes_ends_no_run(project: Project) -> None:
    result = run(project, "Forges", *GATE)
    result.stdout.fnmatch_lines(["decided after 1 epoch: *", "REGRESSED  expert *"])
    assert len(stored(project)) == len(TASKS)


@pytest.mark.slow
def test_plain_gates_must_be_settled_beside_a_baseline(project: Project) -> None:
    result = run(project, "Half", *GATE, "--super-fail-under=0.53")
    assert len(stored(project)) > 3 * len(TASKS)
    # In the end about as many are solved as missed: half of the noisy ones, and four of eight.
    assert "gate: FAILED, mean accuracy 0.5" in result.stdout.str()


SKIPS = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith("t11"):
            item.add_marker(pytest.mark.skip)
"""


def test_a_skipped_task_is_not_waited_for(project: Project) -> None:
    project.write("tasks/conftest.py", SKIPS)
    result = run(project, "Worse", *GATE)
    result.stdout.fnmatch_lines(["decided after 1 epoch: *", "REGRESSED  expert *"])
    result = run(project, "Worse", "--super-epochs=1-4", "--super-fail-under=0.8")
    result.stdout.fnmatch_lines(["decided after 1 epoch: *"])


def test_a_plain_gate_ends_the_run_when_nothing_left_can_change_it(project: Project) -> None:
    result = run(project, "Worse", "--super-epochs=1-4", "--super-fail-under=0.75")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # After 1 of 4 epochs the mean could still become 0.75, after 2 of them 0.5 at most.
    assert len(stored(project)) == 2 * len(TASKS)
    result.stdout.fnmatch_lines(["decided after 2 epochs: 24 of 48 trials were not needed"])
    assert result.outlines[-1] == "gate: FAILED, mean accuracy 0.0000 is under 0.75"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--super-epochs=adaptive"], "--super-epochs=1-10 runs until the gates are decided: it needs *"),
        (["--super-epochs=5-3"], "--super-epochs=5-3: must be a range that rises, such as *"),
        (["--super-epochs=x"], "--super-epochs=x: must be a whole number of at least 1, adaptive, or *"),
        (["--super-epochs=0-3"], "--super-epochs=0-3: must be a whole number of at least 1, adaptive, or *"),
    ],
)
def test_what_cannot_be_meant_is_refused(project: Project, options: list[str], message: str) -> None:
    result = run(project, "Half", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
