"""The agents that ask a model solve shipped tasks in containers, over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import InfrastructureError
from pytest_super.sources import fetch
from pytest_super.tasks.task import Task
from tests.conftest import LEAN
from tests.docker.conftest import unavailable
from tests.gold_player import EDITED, PROBE, SHIPPED, SHOW, GoldPlayer, shipped_task, write_shipped_task
from tests.integration.conftest import read_lines
from tests.openai_server import KEY, Fault, OpenAIServer, running_server
from tests.waiting import until

if TYPE_CHECKING:
    from docker import APIClient

    """Takes the agent's name and further options."""

Play = Callable[..., "Run"]

pytestmark = pytest.mark.docker

MODEL = "--super-model=openai/gpt-4o"
AGAIN = "--super-attempts=2"
# One end to end, one masked, after a prefix. They take two seconds each.
TASKS = ("vader-demo", "mord_data")
# Two or three such calls are half of a task's tokens, the share of the first of two attempts.
WASTED_TOKENS = 100_000
TOOLS = {"react": [], "react-super": ["edit"], "swe-agent": ["open", "goto", "search_file", "edit"]}
# A run that hangs must not hold up the tests for ever.
LONGEST_RUN = 300.0


@dataclass(frozen=True)
class Run:
    """A run of pytest that has ended."""

    project: Path
    folder: Path
    """Its results."""
    process: subprocess.CompletedProcess[str]
    requests: int = 0
    """How often the model's server was asked."""

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in read_lines(self.folder / "results.jsonl")}

    @cached_property
    def calls(self) -> list[dict[str, Any]]:
        return read_lines(self.folder / "calls.jsonl")

    def steps(self, task: str, attempt: int = 1) -> list[dict[str, Any]]:
        path = self.folder / self.rows[task]["folder"] / "trajectory.jsonl"
        return [step for step in read_lines(path) if step["origin"] == "agent" and step["attempt"] == attempt]


def make_project(folder: Path, image: str) -> Path:
    (folder / "tasks").mkdir(parents=True)
    (folder / "pytest.ini").write_text(f"[pytest]\nsuper_image = {image}\n")
    return folder


def run(project: Path, *arguments: str, environment: Mapping[str, str], server: OpenAIServer | None) -> Run:
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *LEAN, "--super-sandbox=docker", *arguments],
        cwd=project,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=LONGEST_RUN,
    )
    folder = (project / ".super/runs/latest").resolve()
    return Run(project, folder, process, len(server.requests) if server else 0)


def plain_environment() -> dict[str, str]:
    """Without keys, and without what would reach into a pytest inside this one."""
    names = [name for name in os.environ if name.startswith(("OPENAI_", "PYTEST_"))]
    return {name: value for name, value in os.environ.items() if name not in names}


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    """The shipped ones, their repositories fetched."""
    tasks = [shipped_task(name) for name in TASKS]
    for task in tasks:
        assert task.repository is not None
        try:
            fetch(task.repository, base=SHIPPED)
        except InfrastructureError as error:
            unavailable(str(error))
    return tasks


@pytest.fixture(scope="module")
def play(image: str, tasks: list[Task], tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Makes each run once: on shipped tasks, led by the gold player after two faults of the provider."""

    @cache
    def play(agent: str, *arguments: str) -> Run:
        project = make_project(tmp_path_factory.mktemp(agent), image)
        for name in TASKS:
            write_shipped_task(name, project / "tasks")
        with running_server() as server:
            server.reply(Fault("429", retry_after=0), Fault("500"))
            server.by(GoldPlayer(tasks, WASTED_TOKENS if AGAIN in arguments else None))
            environment = {**plain_environment(), **server.environment}
            given = (f"--super-agent={agent}", MODEL, *arguments)
            return run(project, *given, environment=environment, server=server)

    return play


# `react` is `react-super` without edits.
@pytest.fixture(
    params=[
        pytest.param("react", marks=pytest.mark.slow),
        "react-super",
        pytest.param("swe-agent", marks=pytest.mark.slow),
    ]
)
def played(request: pytest.FixtureRequest, play: Play) -> Run:
    return play(request.param)


def actions(steps: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(step["action"]["type"], step["action"]["content"]) for step in steps]


def observation_of(steps: list[dict[str, Any]], content: str) -> str:
    """What came of the one cell with this content."""
    [found] = [step["observation"] for step in steps if step["action"]["content"] == content]
    return str(found)


def containers_of(engine: APIClient, run: Run) -> list[Any]:
    found: list[Any] = engine.containers(all=True, filters={"label": f"pytest-super.run={run.folder.name}"})
    return found


# What the agents do


@pytest.mark.slow
def test_every_agent_solves_shipped_tasks(played: Run, engine: APIClient) -> None:
    assert played.process.returncode == 0, played.process.stdout
    assert set(played.rows) == set(TASKS)
    for row in played.rows.values():
        assert (row["metrics"]["accuracy"], row["metrics"]["landmarks"]) == (1.0, 1.0)
        assert row["stop_reason"] == "submitted"
        assert (row["sandbox"], row["isolated"]) == ("docker", True)
    until(lambda: not containers_of(engine, played))


@pytest.mark.slow
def test_every_call_of_the_model_is_booked(played: Run) -> None:
    for id in TASKS:
        row = played.rows[id]
        booked = [call for call in played.calls if call["trial"] == f"{id}/1.0"]
        assert len(booked) == row["steps"] == len(played.steps(id))
        assert row["prompt_tokens"] == sum(call["prompt_tokens"] for call in booked) > 0
        assert row["prompt_tokens"] == sum(step["prompt_tokens"] for step in played.steps(id))
        assert row["cost_usd"] == pytest.approx(sum(call["cost_usd"] for call in booked))
    # With the two that the provider refused.
    assert sum(call["attempts"] for call in played.calls) == played.requests == len(played.calls) + 2


def test_the_key_is_neither_in_the_project_nor_in_a_container(played: Run) -> None:
    files = [path for path in played.project.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert KEY not in played.process.stdout + played.process.stderr
    for id in TASKS:
        *environment, been_here, last = observation_of(played.steps(id), PROBE).splitlines()
        assert any(line.startswith("PWD=") for line in environment)
        assert all("=" in line for line in environment)
        assert "No such file" in been_here
        assert last == "probed"


def test_the_tools_of_an_agent_work_on_the_files_of_its_container(played: Run) -> None:
    for id in TASKS:
        steps = played.steps(id)
        used = [step for step in steps if step["action"]["type"] not in ("", "execute", "submit")]
        assert [step["action"]["type"] for step in used] == TOOLS[played.rows[id]["agent"]]
        assert all(step["outcome"] == "ok" for step in used)
        if used:
            assert observation_of(steps, SHOW) == EDITED


# The same once more


@pytest.mark.long
def test_a_second_attempt_solves_in_a_fresh_container_what_the_first_did_not(
    play: Play, engine: APIClient
) -> None:
    played = play("react-super", AGAIN)
    assert played.process.returncode == 0, played.process.stdout
    for id in TASKS:
        row, first, second = played.rows[id], played.steps(id, 1), played.steps(id, 2)
        assert (row["metrics"]["accuracy"], row["metrics"]["landmarks"]) == (1.0, 1.0)
        assert row["stop_reason"] == "submitted"
        assert "submit" not in [type for type, _ in actions(first)]
        assert [type for type, _ in actions(second)][-1] == "submit"
        for steps in (first, second):
            assert "ls: cannot access '/tmp/been-here'" in observation_of(steps, PROBE)
        assert row["steps"] == len(first) + len(second)
    until(lambda: not containers_of(engine, played))
