"""The files of docs/ci.md, run step by step, with a model whose skill is a number.

What the steps of GitHub do that are not commands is done here: a checkout, a new virtual environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "mine"
version = "1"

[tool.pytest.ini_options]
pythonpath = ["."]
"""
# Every fourth task begins with a calculation that fails, of which the model is told.
AGENT = """
class Agent:
    def run(self, trial):
        number = int(trial.task.query.split()[2])
        asked = trial.task.query
        if number % 4 == 0 and "NameError" in trial.execute("unknown + 40").observation:
            asked += " It failed: unknown is not defined."
        answer = trial.complete([{"role": "user", "content": asked}]).text
        trial.execute(f"answer = {answer}")
        trial.submit(int(answer))
"""
TASKS = 12
# A sequence whose parts are spread evenly, so that few answers have the stated share.
GOLDEN = 0.6180339887


class SkilledModel:
    """Answers each task rightly in this share of the times that it is asked."""

    def __init__(self, skill: float) -> None:
        self._skill = skill
        self._asked: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> str:
        number = int(re.findall(r"\d+", body["messages"][-1]["content"])[0])
        with self._lock:
            self._asked[number] += 1
            place = (self._asked[number] * GOLDEN + number / TASKS) % 1
        return str(number + 40 if place < self._skill else 0)


def jobs() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The jobs of the page: that of a pull request for GitHub and for GitLab, and that of the main branch."""
    blocks = re.findall(r"```yml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
    github, gitlab, main_branch = map(yaml.safe_load, blocks)
    return github["jobs"]["gate"], gitlab["agent"], main_branch["jobs"]["baseline"]


def commands(job: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    """Each command with its variables."""
    return [(step["run"], step.get("env", {})) for step in job["steps"] if "run" in step]


class Runner:
    """One machine of the CI, on which the steps run one after the other."""

    def __init__(self, folder: Path, server: OpenAIServer, environment: Path) -> None:
        self.folder = folder
        self._server = server
        known = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SUPER"))
        }
        self._variables = {
            **known,
            "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        }

    def run(self, command: str, variables: dict[str, str], *, is_checked: bool = True) -> int:
        secret = self._server.environment["OPENAI_API_KEY"]
        own = {
            name: value.replace("${{ secrets.OPENAI_API_KEY }}", secret) for name, value in variables.items()
        }
        place = {name: value for name, value in self._server.environment.items() if name != "OPENAI_API_KEY"}
        if command == "pytest-super image build":
            # What it builds upon comes from a registry.
            command += " --base debian-super:bookworm"
        ran = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env={**self._variables, **place, **own},
            text=True,
            capture_output=True,
            check=False,
        )
        print(f"$ {command}\n{ran.stdout[-6000:]}{ran.stderr[-3000:]}")
        assert not is_checked or ran.returncode == 0, command
        return ran.returncode


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the package, which comes from here and not from the index."""
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "-q", f"{ROOT}[gate]"], check=True)
    return folder


@pytest.fixture
def runner(tmp_path: Path, openai_server: OpenAIServer, environment: Path) -> Runner:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/__init__.py").touch()
    (tmp_path / "mine/agents.py").write_text(AGENT)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "tasks").mkdir()
    for number in range(TASKS):
        task = {
            "id": f"t{number}",
            "set": "expert",
            "query": f"What is {number} + 40?",
            "answer": number + 40,
        }
        (tmp_path / f"tasks/t{number}.task.yaml").write_text(yaml.safe_dump(task))
    return Runner(tmp_path, openai_server, environment)


@pytest.mark.slow
def test_both_files_run_the_same_commands() -> None:
    github, gitlab, _ = jobs()
    assert [one_line(command) for command, _ in commands(github)] == [*map(one_line, gitlab["script"])]


def one_line(command: str) -> str:
    return " ".join(command.split())


@pytest.mark.long
def test_a_pull_request_is_red_for_a_drop_and_not_for_an_agent_that_only_looks_worse(
    runner: Runner, openai_server: OpenAIServer
) -> None:
    *before, (gate, variables) = commands(jobs()[0])
    for command, own in before:
        runner.run(command, own)
    # The main branch makes the baseline.
    openai_server.by(SkilledModel(0.8))
    main = re.sub(r"--super-epochs=\S+ --super-baseline=\S+", "--super-epochs=4", gate)
    runner.run(main, variables, is_checked=False)
    runner.run("pytest-super baseline update .super/runs/latest", {})

    # The same agent, unlucky: about five points lower.
    openai_server.by(SkilledModel(0.75))
    assert runner.run(gate, variables, is_checked=False) == 0
    assert "### Agent: " in (runner.folder / "summary.md").read_text()

    (runner.folder / "summary.md").unlink()
    openai_server.by(SkilledModel(0.3))
    assert runner.run(gate, variables, is_checked=False) == 1
    summary = (runner.folder / "summary.md").read_text()
    assert summary.startswith("### Agent: regressed")
    assert "| lost |" in summary
    check_artifacts(runner, openai_server)


def check_artifacts(runner: Runner, server: OpenAIServer) -> None:
    kept = jobs()[0]["steps"][-1]["with"]["path"].split()
    assert all((runner.folder / path).exists() for path in kept)
    results = (runner.folder / ".super/runs/latest/results.jsonl").read_text().splitlines()
    assert {json.loads(line)["sandbox"] for line in results} == {"docker"}
    # No artifact has the key.
    secret = server.environment["OPENAI_API_KEY"].encode()
    assert not any(secret in path.read_bytes() for path in runner.folder.rglob("*") if path.is_file())


@pytest.mark.long
def test_a_pull_request_pays_for_what_it_touches_and_is_red_for_a_drop(
    runner: Runner, openai_server: OpenAIServer
) -> None:
    *before, (gate, variables) = commands(jobs()[0])
    openai_server.by(SkilledModel(0.8))
    for command, own in commands(jobs()[2]):
        runner.run(command.replace("--super-epochs=10", "--super-epochs=3"), own)
    kept = jobs()[2]["steps"][-1]["with"]["path"].split()
    assert all((runner.folder / path).exists() for path in kept)
    summary = runner.folder / "summary.md"
    agent = runner.folder / "mine/agents.py"
    asked = len(openai_server.requests)
    assert asked == 3 * TASKS

    for command, own in before:
        runner.run(command, own)

    # Written otherwise, and asks the same: ten first requests are asked again.
    agent.write_text(AGENT.replace("asked", "prompt"))
    assert runner.run(gate, variables) == 0
    assert len(openai_server.requests) - asked == 10
    assert summary.read_text().startswith("### Agent: pass\n")

    # An error message is another one, in the three tasks that meet it.
    summary.unlink()
    asked = len(openai_server.requests)
    agent.write_text(AGENT.replace("It failed", "Error"))
    assert runner.run(gate, variables, is_checked=False) == 0
    assert len(openai_server.requests) - asked == 10 + 3 * 3

    # Another prompt, with which the model is worse.
    summary.unlink()
    asked = len(openai_server.requests)
    agent.write_text(AGENT.replace("trial.task.query\n", '"Guess. " + trial.task.query\n'))
    openai_server.by(SkilledModel(0.3))
    assert runner.run(gate, variables, is_checked=False) == 1
    assert len(openai_server.requests) - asked == 10 + 3 * TASKS
    assert summary.read_text().startswith("### Agent: regressed")
    assert "| lost |" in summary.read_text()
    check_artifacts(runner, openai_server)
