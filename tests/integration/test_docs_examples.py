"""The examples of the docs run: agents, fixtures, hooks and a sandbox provider."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_super.cli import main
from tests.integration.conftest import Project
from tests.pages import blocks_of, example, page_path


def test_the_agent_and_the_fake_kernel_work(project: Project) -> None:
    project.write("agents.py", example("agent-python.md", "agents.py"))
    project.write("conftest.py", example("agent-python.md", "fake_kernel.py"))
    project.write("script.json", json.dumps(["print(40 + 2)", "SUBMIT 42"]))
    project.add_task("t")
    project.run("--super-model=scripted:script.json", agent="agents:Looper").assert_outcomes(passed=1)


def test_the_script_works(project: Project) -> None:
    project.write("tasks/mean.task.yaml", example("quickstart.md", "tasks/mean.task.yaml"))
    project.write("script.yaml", example("models.md", "script.yaml"))
    project.run("--super-model=scripted:script.yaml", agent="react").assert_outcomes(passed=1)
    project.run(agent="gold").assert_outcomes(passed=1)


def test_the_agent_of_the_readme_and_the_quickstart_solves_the_task_that_init_writes(
    pytester: pytest.Pytester,
) -> None:
    assert main(["init"]) == 0
    for page in ("README.md", "quickstart.md"):
        assert example(page, "agents.py") == (pytester.path / "agents.py").read_text()
    for agent in ("gold", "agents:Reader"):
        result = pytester.runpytest(f"--super-agent={agent}", "--super-sandbox=local")
        result.assert_outcomes(passed=1)
        # Every metric applies, and is 1.
        result.stdout.re_match_lines([r"all +- +1( +1\.000){5} +0"])


def test_the_gates_of_the_quickstart_are_green_and_red(project: Project) -> None:
    for name in ("tasks/mean.task.yaml", "mine.py", "good.json", "bad.json"):
        project.write(name, example("quickstart.md", name))

    def gate(model: str, *args: str) -> int:
        result = project.run(f"--super-model=scripted:{model}.json", *args, agent="mine:Mine")
        return int(result.ret)

    assert gate("bad", "--super-fail-under=0.9") == 1
    assert gate("good", "--super-fail-under=0.9", "--super-epochs=10") == 0
    assert main(["baseline", "update", ".super/runs/latest"]) == 0
    compared = ("--super-epochs=5", "--super-baseline=baseline.json")
    assert [gate(model, *compared) for model in ("good", "bad")] == [0, 1]


def test_the_hooks_work(project: Project) -> None:
    project.write("conftest.py", "\n".join(block.text for block in blocks_of(page_path("hooks.md"))))
    project.add_task("t")
    project.add_task("wrong", answer=0)
    result = project.run("-s", agent="quick")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*t 1 submit ok*", "*Captured agent call*", "steps: 1"])
    assert project.results["t[1]"]["metrics"]["failed_cells"] == 0
    assert (project.path / "solved.txt").read_text() == "1 of 2\n"


def test_the_sandbox_provider_passes_the_conformance_suite(project: Project) -> None:
    project.pytester.makeini("[pytest]\npythonpath = .\nmarkers = slow: takes more than seconds\n")
    for name in ("command_sandbox.py", "test_provider.py"):
        project.write(name, example("sandboxes.md", name))
    # Together they call each method of the example: `open`, `cause_of_death` and `close`.
    some = "killed_from_inside or close_ends"
    result = project.pytester.runpytest("test_provider.py", "-k", some)
    assert result.parseoutcomes()["passed"] == 2
    assert result.ret == 0


@pytest.mark.slow
def test_the_way_from_a_repository_to_a_task_works(tmp_path: Path) -> None:
    (tmp_path / "trend").mkdir()
    for name in ("trend/mk.py", "trend/run.py"):
        (tmp_path / name).write_text(example("papers.md", name))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    printed = ""
    for name in ("new", "verify", "gold"):
        for line in example("papers.md", name).splitlines():
            if line.startswith("$ "):
                ran = subprocess.run(
                    line[2:],
                    shell=True,
                    cwd=tmp_path,
                    env={**os.environ, "PATH": path},
                    text=True,
                    stdout=subprocess.PIPE,
                    check=True,
                )
                printed = ran.stdout
            else:
                assert line in printed.splitlines()
    assert r"(?<!\w)5\.678(?!\w)" in (tmp_path / "trend.task.yaml").read_text()
