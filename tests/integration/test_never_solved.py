"""Adaptive runs leave out the tasks that their baseline never solved."""

import json
from typing import Any

import pytest

# pytester forgets what a run has imported, and numpy refuses to be imported twice.
from pytest_super.gate.never_solved import is_audited
from tests.integration.conftest import FAKE_KERNELS, Folder

# Solves four tasks, and others that are named in a file, which is not part of the agent.
AGENT = """
from pathlib import Path

class Agent:
    def run(self, trial):
        more = Path(__file__).with_name("more.txt").read_text().split()
        trial.submit(42 if int(trial.task.id[1:]) < 4 or trial.task.id in more else 0)
"""
OWN_AGENT = """
import pytest

@pytest.fixture
def super_agent():
    from agent import Agent
    return Agent()
"""
TASKS = [f"t{number}" for number in range(8)]
# Solved in all of ten epochs, in one, or in none.
ALWAYS, ONCE, NEVER = TASKS[:4], TASKS[4:5], TASKS[5:]
GATE = ("--super-baseline=baseline.json", "--super-max-regression=20", "--super-epochs=adaptive")


@pytest.fixture
def project(pytester: pytest.Pytester) -> Folder:
    """With a baseline of ten epochs, of which one was run."""
    made = Folder(pytester, "super_sandbox = local\n", agent=AGENT)
    made.write("more.txt", "")
    for id in TASKS:
        made.add_task(id)
    pytester.runpytest("--super-agent=agent:Agent")
    assert made.command("baseline", "update", ".super/runs/latest").returncode == 0
    path = made.path / "baseline.json"
    data = json.loads(path.read_text())
    for id, task in data["tasks"].items():
        task["values"] = [float(id in ALWAYS or (id in ONCE and not epoch)) for epoch in range(10)]
        task["cost_usd"] = 1.0
    path.write_text(json.dumps(data))
    draw(made, is_audit=False)
    return made


def draw(project: Folder, *, is_audit: bool) -> None:
    """Name the baseline so that the runs of the agent are an audit, or are none."""
    path = project.path / "baseline.json"
    data = json.loads(path.read_text())
    subject = json.loads((project.latest / "run.json").read_text())["subject"]
    names = (f"main-{number}" for number in range(1000))
    data["run"] = next(name for name in names if is_audited(subject, name) is is_audit)
    path.write_text(json.dumps(data))


def ran(project: Folder) -> set[str]:
    lines = (project.latest / "results.jsonl").read_text().splitlines()
    return {json.loads(line)["id"] for line in lines}


def regression(project: Folder) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((project.latest / "verdict.json").read_text())["regression"]["expert"]
    return stored


def run(project: Folder, *options: str) -> pytest.RunResult:
    return project.pytester.runpytest("--super-agent=agent:Agent", *GATE, *options)


def test_what_was_never_solved_does_not_run_and_that_is_said(project: Folder) -> None:
    # All other tests of this file run without workers, and for longer.
    result = run(project, "-n1", "--super-max-regression=60")
    assert result.ret == pytest.ExitCode.OK
    assert ran(project) == {*ALWAYS, *ONCE}
    result.stdout.fnmatch_lines([
        "expert: 1* epochs* against baseline.json: *; about $* of model calls*",
        "expert: 3 tasks that baseline.json never solved in 10 trials do not run: *",
        "expert      8 *",
    ])  # fmt: skip
    # A tenth of one task, over three tasks.
    assert "3 tasks of expert that the baseline never solved were not run" in result.stdout.str()
    assert "the verdict estimates that 3.3 % of their trials would be solved" in result.stdout.str()
    assert regression(project)["not_run"] == 3
    assert sorted(json.loads((project.latest / "run.json").read_text())["not_run"]) == NEVER


@pytest.mark.long
@pytest.mark.parametrize(
    "option",
    ["--super-all-tasks", "--super-fail-under=0.1", "--super-epochs=2", "--super-must-solve=must.txt"],
)
def test_what_asks_for_all_tasks_runs_them(project: Folder, option: str) -> None:
    project.write("must.txt", "\n".join(f"{id} 0" for id in NEVER))
    run(project, option)
    assert ran(project) == {*TASKS}
    assert regression(project)["not_run"] == 0


@pytest.mark.long
def test_a_task_that_must_be_solved_runs(project: Folder) -> None:
    project.write("must.txt", NEVER[0])
    result = run(project, "--super-must-solve=must.txt")
    assert ran(project) == {*ALWAYS, *ONCE, NEVER[0]}
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.long
def test_a_task_with_other_conditions_runs(project: Folder) -> None:
    project.add_task(NEVER[0], query="do something else")
    run(project)
    assert ran(project) == {*ALWAYS, *ONCE, NEVER[0]}


@pytest.mark.long
def test_an_audit_runs_all_tasks_whichever_run_of_the_subject_it_is(project: Folder) -> None:
    draw(project, is_audit=True)
    project.write("more.txt", NEVER[0])
    for _ in range(2):
        result = run(project)
        assert ran(project) == {*TASKS}
        result.stdout.no_fnmatch_line("*never solved*")
        assert f"won   {NEVER[0]}  0.00 -> 1.00" in result.outlines


@pytest.mark.long
@pytest.mark.parametrize("conftest", [OWN_AGENT, FAKE_KERNELS], ids=["agent", "kernel"])
def test_what_only_the_project_knows_leaves_nothing_out(project: Folder, conftest: str) -> None:
    project.write("conftest.py", conftest)
    run(project)
    assert ran(project) == {*TASKS}


@pytest.mark.long
def test_a_resumed_run_leaves_out_the_same(project: Folder) -> None:
    run(project)
    result = run(project, "--super-resume=latest")
    assert ran(project) == {*ALWAYS, *ONCE}
    assert regression(project)["not_run"] == 3
    result.stdout.fnmatch_lines(["resume: * reused from *"])


@pytest.mark.long
def test_a_stored_run_is_compared_in_the_same_way_but_is_no_baseline(project: Folder) -> None:
    run(project)
    compared = project.command("compare", "baseline.json", ".super/runs/latest")
    assert "3 tasks of expert that the baseline never solved were not run" in compared.stdout
    assert "left out" not in compared.stdout
    refused = project.command("baseline", "update", ".super/runs/latest")
    assert refused.returncode != 0
    assert "has not run 3 tasks that its baseline never solved: add it (--add)" in refused.stderr
    checked = project.command("baseline", "check", "--epochs=adaptive", "--max-regression=20")
    assert "3 tasks that baseline.json never solved in 10 trials do not run" in checked.stdout


@pytest.mark.long
def test_an_audit_can_be_added_to_a_baseline_and_a_shorter_run_too(project: Folder) -> None:
    for more, option in (("", "--super-all-tasks"), (NEVER[0], "--super-max-regression=20")):
        run(project, option)
        data = json.loads((project.path / "baseline.json").read_text())
        data["subject"] = json.loads((project.latest / "run.json").read_text())["subject"]
        (project.path / "baseline.json").write_text(json.dumps(data))
        added = project.command("baseline", "update", "--add", ".super/runs/latest")
        assert added.returncode == 0, (more, added.stderr)
    tasks = json.loads((project.path / "baseline.json").read_text())["tasks"]
    assert len(tasks[NEVER[0]]["values"]) == 12
    assert len(tasks[ALWAYS[0]]["values"]) > 12
