"""The files of docs/ci.md and our action, run step by step, with a model whose skill is a number."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from pytest_super.cli import main
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from tests.docker.github import GitHub, Job, jobs, variables_of_a_machine
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.timeout(1800)]

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


def with_epochs(job: dict[str, Any], epochs: int) -> dict[str, Any]:
    """The job with fewer epochs, which take less time."""
    return yaml.safe_load(re.sub(r"--super-epochs=\d+", f"--super-epochs={epochs}", yaml.safe_dump(job)))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment, into which the action installs."""
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def github(tmp_path: Path, openai_server: OpenAIServer, environment: Path) -> GitHub:
    project = tmp_path / "project"
    (project / "mine").mkdir(parents=True)
    (project / "mine/__init__.py").touch()
    (project / "mine/agents.py").write_text(AGENT)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "tasks").mkdir()
    for number in range(TASKS):
        task = {
            "id": f"t{number}",
            "set": "expert",
            "query": f"What is {number} + 40?",
            "answer": number + 40,
        }
        (project / f"tasks/t{number}.task.yaml").write_text(yaml.safe_dump(task))
    place = dict(openai_server.environment)
    secrets = {"OPENAI_API_KEY": place.pop("OPENAI_API_KEY")}
    variables = {**variables_of_a_machine(environment), **place}
    return GitHub(repository=project, place=tmp_path, variables=variables, secrets=secrets)


@pytest.mark.long
def test_a_pull_request_is_red_for_a_drop_and_not_for_an_agent_that_only_looks_worse(
    github: GitHub, openai_server: OpenAIServer
) -> None:
    gate, _, main_branch = jobs()
    # Without a baseline nothing is installed.
    first = github.run(gate)
    assert first.has_failed
    assert "there is no baseline.json to compare with" in first.log
    assert "pip install" not in first.log

    # The main branch makes the baseline, which is put into git.
    openai_server.by(SkilledModel(0.8))
    made = github.run(with_epochs(main_branch, 4))
    assert not made.has_failed
    shutil.copy(made.folder / "baseline.json", github.repository)

    # The same agent, unlucky: about five points lower.
    openai_server.by(SkilledModel(0.75))
    unlucky = github.run(gate)
    assert not unlucky.has_failed
    assert "### Agent: " in unlucky.summary
    # The baseline is that of git, and the image was not built again.
    assert [key.rpartition("-")[0] for key in unlucky.restored] == [quote(DEFAULT_IMAGE, safe="")]

    openai_server.by(SkilledModel(0.3))
    worse = github.run(gate)
    assert worse.has_failed
    assert worse.summary.startswith("### Agent: regressed")
    assert "| lost |" in worse.summary
    check_artifacts(worse, openai_server)

    again = github.run(gate, is_again=True)
    assert again.has_failed
    assert "of the same subject; look 2 at this subject" in again.log


@pytest.mark.long
def test_the_workflow_of_init_is_red_for_an_agent_worse_than_on_main(github: GitHub, tmp_path: Path) -> None:
    github.repository = tmp_path / "new"
    folder = github.repository / "my project"
    (github.repository / ".git").mkdir(parents=True)
    assert main(["init", str(folder)]) == 0
    written = (github.repository / ".github/workflows/agent.yml").read_text()
    assert not github.run(yaml.safe_load(written)["jobs"]["tasks"], event="push").has_failed

    job = yaml.safe_load(written.replace("=gold", "=agents:Reader"))["jobs"]["tasks"]
    assert not github.run(job).has_failed
    agent = folder / "agents.py"
    agent.write_text(agent.read_text().replace("float(", "0 * float("))
    worse = github.run(job)
    assert worse.has_failed
    assert worse.summary.startswith("### Agent: regressed")


def check_artifacts(job: Job, server: OpenAIServer) -> None:
    kept = job.machine / "artifacts/pytest-super"
    assert (kept / "0").read_text().startswith("<?xml")
    results = (kept / "2/runs/latest/results.jsonl").read_text().splitlines()
    assert {json.loads(line)["sandbox"] for line in results} == {"docker"}
    # No artifact has the key.
    secret = server.environment["OPENAI_API_KEY"].encode()
    assert not any(secret in path.read_bytes() for path in job.machine.rglob("*") if path.is_file())


@pytest.mark.long
def test_a_pull_request_pays_for_what_it_touches_and_is_red_for_a_drop(
    github: GitHub, openai_server: OpenAIServer
) -> None:
    gate, _, main_branch = jobs()
    openai_server.by(SkilledModel(0.8))
    assert not github.run(with_epochs(main_branch, 3)).has_failed
    agent = github.repository / "mine/agents.py"
    asked = len(openai_server.requests)
    assert asked == 3 * TASKS

    # Written otherwise, and asks the same.
    agent.write_text(AGENT.replace("asked", "prompt"))
    same = github.run(gate)
    assert not same.has_failed
    assert len(openai_server.requests) == asked
    assert same.summary.startswith("### Agent: pass\n")

    # An error message is another one, in the three tasks that meet it.
    asked = len(openai_server.requests)
    agent.write_text(AGENT.replace("It failed", "Error"))
    assert not github.run(gate).has_failed
    assert len(openai_server.requests) - asked == 3 * 3

    # Another prompt, with which the model is worse.
    asked = len(openai_server.requests)
    agent.write_text(AGENT.replace("trial.task.query\n", '"Guess. " + trial.task.query\n'))
    openai_server.by(SkilledModel(0.3))
    worse = github.run(gate)
    assert worse.has_failed
    assert len(openai_server.requests) - asked == 3 * TASKS
    assert worse.summary.startswith("### Agent: regressed")
    assert "| lost |" in worse.summary
    check_artifacts(worse, openai_server)
