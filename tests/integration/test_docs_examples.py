"""The examples of the docs run: agents, fixtures, hooks and a sandbox provider."""

from __future__ import annotations

import json

import pytest

from tests.pages import ROOT, blocks_of, example


class Project:
    """A project made of examples."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        pytester.makeini("[pytest]\npythonpath = .\nmarkers = slow: takes more than seconds\n")
        self.write(
            "tasks/t.task.yaml", json.dumps({"id": "t", "set": "expert", "query": "do it", "answer": 42})
        )

    def write(self, name: str, text: str) -> None:
        path = self.pytester.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, agent: str, *arguments: str) -> pytest.RunResult:
        options = (f"--super-agent={agent}", "--super-sandbox=local")
        return self.pytester.runpytest(*options, *arguments)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def test_the_agent_and_the_fake_kernel_work(project: Project) -> None:
    project.write("agents.py", example("agent-python.md", "agents.py"))
    project.write("conftest.py", example("agent-python.md", "fake_kernel.py"))
    project.write("script.json", json.dumps(["print(40 + 2)", "SUBMIT 42"]))
    project.run("agents:Looper", "--super-model=scripted:script.json").assert_outcomes(passed=1)


def test_the_script_works(project: Project) -> None:
    project.write("tasks/mean.task.yaml", example("quickstart.md", "tasks/mean.task.yaml"))
    project.write("script.yaml", example("models.md", "script.yaml"))
    project.write("conftest.py", example("agent-python.md", "fake_kernel.py"))
    result = project.run("react", "--super-model=scripted:script.yaml", "-k", "mean")
    result.assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize("agent", ["gold", "agents:Reader"])
def test_the_quickstarts_task_and_agent_work(project: Project, agent: str) -> None:
    for name in ("tasks/mean.task.yaml", "agents.py"):
        project.write(name, example("quickstart.md", name))
    project.write("conftest.py", example("agent-python.md", "fake_kernel.py"))
    project.run(agent, "tasks/mean.task.yaml").assert_outcomes(passed=1)


def test_the_fixtures_work(project: Project) -> None:
    project.write("conftest.py", example("agent-python.md", "fixtures.py"))
    project.write(
        "agents.py",
        "class Curious:\n"
        "    def run(self, trial):\n"
        "        assert trial.task.query == 'do it\\nBe brief.'\n"
        "        assert trial.execute('!cat notes.txt').observation == 'read me first'\n"
        "        trial.submit(42)\n",
    )
    project.run("agents:Curious").assert_outcomes(passed=1)


def test_the_hooks_work(project: Project) -> None:
    project.write("conftest.py", "\n".join(block.text for block in blocks_of(ROOT / "docs" / "hooks.md")))
    result = project.run("quick", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*t 1 submit ok*"])
    (line,) = (project.pytester.path / ".super/runs/latest/results.jsonl").read_text().splitlines()
    assert json.loads(line)["metrics"]["failed_cells"] == 0
    assert (project.pytester.path / "solved.txt").read_text() == "1 of 1\n"


def test_the_sandbox_provider_passes_the_conformance_suite(project: Project) -> None:
    for name in ("command_sandbox.py", "test_provider.py"):
        project.write(name, example("sandboxes.md", name))
    # One test for each method of the example: `open`, `cause_of_death` and `close`.
    some = "child_processes_is_complete or killed_from_inside or close_ends"
    result = project.pytester.runpytest("test_provider.py", "-k", some)
    assert result.parseoutcomes()["passed"] == 3
    assert result.ret == 0
