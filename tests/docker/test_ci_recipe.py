"""The files of docs/ci.md, run step by step, with a model whose skill is a number.

What the steps of GitHub do that are not commands is done here: a checkout, a new virtual environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
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

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.network, pytest.mark.timeout(900)]

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
AGENT = """
class Agent:
    def run(self, trial):
        answer = trial.complete([{"role": "user", "content": trial.task.query}]).text
        trial.execute(f"answer = {answer}")
        trial.submit(int(answer))
"""
TASKS = 10
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


def files() -> tuple[dict[str, Any], dict[str, Any]]:
    """The jobs of the page: for GitHub, and for GitLab."""
    blocks = re.findall(r"```yml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
    github, gitlab = map(yaml.safe_load, blocks)
    return github["jobs"]["gate"], gitlab["agent"]


def github_commands() -> list[tuple[str, dict[str, str]]]:
    """Each command with its variables."""
    return [(step["run"], step.get("env", {})) for step in files()[0]["steps"] if "run" in step]


class Runner:
    """One machine of the CI, on which the steps run one after the other."""

    def __init__(self, folder: Path, server: OpenAIServer, wheel: Path) -> None:
        self.folder = folder
        self._server = server
        subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)
        # The package itself comes from here and not from the index.
        subprocess.run([folder / ".venv/bin/pip", "install", "-q", wheel], check=True)
        known = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SUPER"))
        }
        self._variables = {
            **known,
            "PATH": f"{folder / '.venv/bin'}:{os.environ['PATH']}",
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "-q", "-w", str(folder))
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True)
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture
def runner(tmp_path: Path, openai_server: OpenAIServer, wheel: Path) -> Runner:
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
    return Runner(tmp_path, openai_server, wheel)


def test_both_files_run_the_same_commands() -> None:
    github = [" ".join(command.split()) for command, _ in github_commands()]
    assert github == [" ".join(command.split()) for command in files()[1]["script"]]


def test_a_pull_request_is_red_for_a_drop_and_not_for_an_agent_that_only_looks_worse(
    runner: Runner, openai_server: OpenAIServer
) -> None:
    *before, (gate, variables) = github_commands()
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
    kept = files()[0]["steps"][-1]["with"]["path"].split()
    assert all((runner.folder / path).exists() for path in kept)
    results = (runner.folder / ".super/runs/latest/results.jsonl").read_text().splitlines()
    assert {json.loads(line)["sandbox"] for line in results} == {"docker"}
    # No artifact has the key.
    shutil.rmtree(runner.folder / ".venv")
    secret = openai_server.environment["OPENAI_API_KEY"].encode()
    assert not any(secret in path.read_bytes() for path in runner.folder.rglob("*") if path.is_file())
