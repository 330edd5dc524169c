"""Runs in containers through pytest itself: nothing stays, whatever ends them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.kernel.providers.docker import container_config, disk_use, sandbox
from pytest_super.kernel.providers.docker.sweep import sweep
from pytest_super.tasks.fields import parse_size
from tests.waiting import until

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker

AGENT = """
from pathlib import Path

class Sleeper:
    def run(self, trial):
        trial.execute("print('begun')")
        Path("sleeping-" + trial.task.id).touch()
        trial.execute("import time; time.sleep(600)")
"""

# Ends the first worker after it has made a container and before it starts it.
DYING = """
import os, signal
from pathlib import Path
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox

start = DockerSandbox._start

def die_once(sandbox, api):
    try:
        Path("died").touch(exist_ok=False)
    except FileExistsError:
        return start(sandbox, api)
    os.kill(os.getpid(), signal.SIGKILL)

DockerSandbox._start = die_once
"""

# Ends its container while a cell runs, in the way that the task's id names.
KILLED = '''
import os, signal, threading, time
from pytest_super.kernel.providers.docker.engine import connect

WAYS = {
    "kill": lambda container: connect().kill(container),
    "remove": lambda container: connect().remove_container(container, force=True),
    "pause": lambda container: connect().pause(container),
    "for_a_moment": lambda container: pause_for_a_moment(container),
    "host": lambda container: os.kill(connect().inspect_container(container)["State"]["Pid"], signal.SIGKILL),
    "inside": lambda container: None,
    "limited": lambda container: None,
}

# Also what could end the first process: SIGKILL at its limit of processor time, which signals make it use.
INSIDE = {
    "inside": "!kill -9 -1",
    "limited": """
import os, resource, signal, time
try:
    resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))
    while True:
        os.kill(1, signal.SIGCONT)
finally:
    os.system("kill -9 -1")
""",
}

def pause_for_a_moment(container):
    connect().pause(container)
    time.sleep(1)
    connect().unpause(container)

class Killed:
    def run(self, trial):
        def end():
            while not trial.kernel.is_running:
                time.sleep(0.01)
            WAYS[trial.task.id](trial.kernel._sandbox._container)
        threading.Thread(target=end).start()
        trial.execute(INSIDE.get(trial.task.id, "import time; time.sleep(600)"))
'''


@pytest.fixture
def project(pytester: pytest.Pytester, image: str) -> pytest.Pytester:
    pytester.makepyfile(agent=AGENT)
    pytester.makeini(f"[pytest]\npythonpath = .\nsuper_image = {image}\nsuper_sandbox = docker\n")
    for id in ("one", "two"):
        task = {"id": id, "set": "expert", "query": "q", "answer": 42, "solution": {"cells": ["6 * 7"]}}
        (pytester.path / f"{id}.task.yaml").write_text(json.dumps(task))
    return pytester


def ours(engine: APIClient, project: pytest.Pytester) -> list[Any]:
    """Containers of the runs in this project's folder, running or not."""
    runs = [path.name for path in (project.path / ".super/runs").glob("2*")]
    return [
        container
        for run in runs
        for container in engine.containers(all=True, filters={"label": f"pytest-super.run={run}"})
    ]


def started(engine: APIClient, project: pytest.Pytester) -> list[Any]:
    return [container for container in ours(engine, project) if container["State"] != "created"]


def processes(session: int) -> str:
    return subprocess.run(
        ["ps", "-o", "pid=", "-s", str(session)], capture_output=True, text=True
    ).stdout.strip()


def start(project: pytest.Pytester, workers: tuple[str, ...]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pytest", "--super-agent=agent:Sleeper", ".", *workers]
    process = subprocess.Popen(command, cwd=project.path, stdout=subprocess.DEVNULL, start_new_session=True)
    count = 2 if workers else 1
    until(lambda: len(list(project.path.glob("sleeping-*"))) == count, 60)
    return process


def trajectories(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob(".super/runs/latest/trials/*/*/trajectory.jsonl")]


def test_the_gold_agent_solves_tasks_in_containers(project: pytest.Pytester) -> None:
    result = project.runpytest("--super-agent=gold", ".")
    result.assert_outcomes(passed=2)
    rows = (project.path / ".super/runs/latest/results.jsonl").read_text().splitlines()
    assert all(json.loads(row)["isolated"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [pytest.param((), marks=pytest.mark.slow), ("-n2",)], ids=["", "n2"])
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_run_that_is_ended_leaves_no_container_and_no_process(
    project: pytest.Pytester, engine: APIClient, workers: tuple[str, ...], number: signal.Signals
) -> None:
    process = start(project, workers)
    # At least, because that of the next trial can be made ahead.
    assert len(ours(engine, project)) >= (2 if workers else 1)
    # To the pytest process alone; a terminal would send Ctrl-C to the workers as well.
    os.kill(process.pid, number)
    process.wait(30)
    until(lambda: not started(engine, project) and not processes(process.pid), 10)
    if number == signal.SIGKILL:
        # It can come between the making and the start of the next container, which the next run removes.
        sweep()
    assert not ours(engine, project)
    texts = trajectories(project.path)
    assert len(texts) == (2 if workers else 1)
    assert all("begun" in text for text in texts)


@pytest.mark.slow
def test_a_worker_that_dies_before_the_start_of_its_container_leaves_none(
    project: pytest.Pytester, engine: APIClient
) -> None:
    project.makeconftest(DYING)
    result = project.runpytest_subprocess("--super-agent=gold", ".", "-n1")
    result.assert_outcomes(passed=2)
    assert (project.path / "died").exists()
    assert not ours(engine, project)


def causes_of_death(project: pytest.Pytester, *ways: str, **limits: float) -> dict[str, str | None]:
    """The error of a trial whose container ends in each of the ways; None for a miss."""
    project.makepyfile(killed=KILLED)
    files = [project.path / f"{way}.task.yaml" for way in ways]
    for file in files:
        id = file.name.removesuffix(".task.yaml")
        task = {"id": id, "set": "expert", "query": "q", "answer": 1, "limits": limits}
        file.write_text(json.dumps(task))
    result = project.runpytest("--super-agent=killed:Killed", *files)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    return errors_of_latest(project)


def errors_of_latest(project: pytest.Pytester) -> dict[str, str | None]:
    """The error of each trial of the last run; None for one that is scored."""
    rows = map(json.loads, (project.path / ".super/runs/latest/results.jsonl").read_text().splitlines())
    return {row["id"]: row["error"] for row in rows}


def test_a_container_ended_by_the_engine_is_an_error_and_from_inside_a_miss(project: pytest.Pytester) -> None:
    causes = causes_of_death(project, "kill", "remove", "inside", "limited")
    assert causes.pop("inside") is None
    assert causes.pop("limited") is None
    assert len(causes) == 2
    assert all("killed from outside, through the engine" in str(cause) for cause in causes.values())


@pytest.mark.parametrize(
    ("field", "limit", "code"),
    [
        ("memory", "100m", "!python3 -c 'bytearray(b\"x\") * 400_000_000'"),
        ("disk", "20m", "import time\nopen('large', 'wb').write(b'x' * 50_000_000)\ntime.sleep(60)"),
    ],
)
def test_above_our_default_is_an_error_and_above_a_tasks_own_limit_a_miss(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, field: str, limit: str, code: str
) -> None:
    module = container_config if field == "memory" else sandbox
    monkeypatch.setattr(module, f"DEFAULT_{field.upper()}", parse_size(limit))
    monkeypatch.setattr(disk_use, "CHECK_SECONDS", 0.3)
    for id, given in (("ours", {}), ("own", {field: limit})):
        task = {"id": id, "set": "expert", "query": code, "answer": 1, "sandbox": given}
        (project.path / f"{id}.task.yaml").write_text(json.dumps(task))
    project.makepyfile(agent="class Agent:\n    def run(self, trial): trial.execute(trial.task.query)")
    project.runpytest("--super-agent=agent:Agent", "ours.task.yaml", "own.task.yaml")
    errors = errors_of_latest(project)
    assert f"set `sandbox.{field}` in the task file" in str(errors["ours"])
    assert errors["own"] is None


def test_a_container_whose_first_process_is_killed_on_the_host_is_an_error(
    project: pytest.Pytester, engine: APIClient
) -> None:
    if engine.info().get("CgroupVersion", "1") != "1":
        pytest.skip("this engine can lose the event of a memory kill")
    (cause,) = causes_of_death(project, "host").values()
    assert "killed from outside, on its host" in str(cause)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "limit"), [("pause", "cell"), ("for_a_moment", "wall")])
def test_a_pause_until_a_limit_is_an_error(project: pytest.Pytester, way: str, limit: str) -> None:
    (cause,) = causes_of_death(project, way, **{limit: 3}).values()
    assert "paused from outside, through the engine" in str(cause)


def test_a_named_image_that_is_missing_is_an_error_before_anything_runs(project: pytest.Pytester) -> None:
    options = ("--super-sandbox=auto", "--super-image=no-such:image")
    result = project.runpytest("--super-agent=gold", *options, ".")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no image 'no-such:image'*pytest-super image build*docker pull*"])
    assert not (project.path / ".super").exists()


def test_an_image_that_one_task_misses_is_that_tasks_error(project: pytest.Pytester) -> None:
    task = {"id": "one", "set": "expert", "query": "q", "answer": 42, "solution": {"cells": ["6 * 7"]}}
    own = json.dumps({**task, "sandbox": {"image": "no-such:image"}})
    (project.path / "one.task.yaml").write_text(own)
    project.runpytest("--super-agent=gold", ".").assert_outcomes(errors=1, passed=1)


def test_containers_trust_what_the_machine_is_told_to_trust(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy, so that no path of the machine has to exist on the engine's."""
    bundle = project.path / "proxy.pem"
    bundle.write_text("the proxy's own")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    cell = "import os; open(os.environ['PIP_CERT']).read()"
    task = {"id": "trust", "set": "expert", "query": "q", "answer": bundle.read_text()}
    given = {"sandbox": {"network": True}, "solution": {"cells": [cell]}}
    (project.path / "one.task.yaml").write_text(json.dumps(task | given))
    project.runpytest("--super-agent=gold", "one.task.yaml").assert_outcomes(passed=1)
