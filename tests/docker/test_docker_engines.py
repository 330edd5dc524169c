"""Runs on several container engines: that of this machine, and another one over ssh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.docker.own_engine import engine_of_its_own, ssh_server
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.docker.own_engine import OwnEngine

pytestmark = [pytest.mark.docker, pytest.mark.slow]

# Ends the other engine, or its tunnel, as soon as its trial runs there. Trials here wait for that.
KILLER = """
import os, subprocess, time
from pathlib import Path

class Killer:
    def run(self, trial):
        trial.execute("print('begun')")
        if trial.kernel._sandbox.engine != "default" and not Path("killed").exists():
            subprocess.run(os.environ["KILL"].split(), check=True)
            Path("killed").touch()
        while not Path("killed").exists():
            time.sleep(0.1)
        trial.execute("import time; time.sleep(3)")
        trial.submit(42)
"""
SLEEPER = """
from pathlib import Path

class Sleeper:
    def run(self, trial):
        trial.execute("print('begun')")
        Path("sleeping-" + str(trial.kernel._sandbox.engine == "default")).touch()
        trial.execute("import time; time.sleep(600)")
"""


@pytest.fixture(scope="module")
def other() -> Iterator[OwnEngine]:
    with engine_of_its_own() as engine:
        yield engine


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of an `ssh` that reaches this machine."""
    with ssh_server(tmp_path_factory.mktemp("ssh")) as folder:
        yield folder


@pytest.fixture
def project(
    pytester: pytest.Pytester, image: str, ssh: Path, other: OwnEngine, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """Six tasks on both engines."""
    monkeypatch.setenv("PATH", str(ssh), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    # Of the tunnels; a short path.
    (other.root / "tmp").mkdir(exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(other.root / "tmp"))
    pytester.makepyfile(killer=KILLER, sleeper=SLEEPER)
    pytester.makeini(
        "[pytest]\npythonpath = .\nfilterwarnings = error\n"
        f"super_image = {image}\nsuper_engine =\n    default\n    {away(other)}\n"
    )
    for number in range(6):
        write_task(pytester, f"t{number}")
    return pytester


def away(other: OwnEngine) -> str:
    return f"ssh://away{other.root}/s"


def write_task(project: pytest.Pytester, id: str, **fields: Any) -> None:
    task = {"id": id, "set": "expert", "query": "q", "answer": 42, "solution": {"cells": ["6 * 7"]}, **fields}
    (project.path / f"{id}.task.yaml").write_text(json.dumps(task))


def rows(project: pytest.Pytester) -> list[dict[str, Any]]:
    stored = project.path / ".super/runs/latest/results.jsonl"
    return [json.loads(row) for row in stored.read_text().splitlines()]


def ids(client: Any, *arguments: str) -> list[str]:
    found = client("ps", "-aq", "--filter", "label=pytest-super", *arguments)
    return list(found.stdout.split())


def local(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True)


def what_is_left(project: pytest.Pytester, other: OwnEngine) -> list[str]:
    """Containers on both engines, and tunnels."""
    runs = [path.name for path in (project.path / ".super/runs").glob("2*")]
    filters = [("--filter", f"label=pytest-super.run={run}") for run in runs]
    containers = [id for each in filters for client in (local, other.client) for id in ids(client, *each)]
    return [*containers, *map(str, (other.root / "tmp").glob("pytest-super-tunnel-*"))]


def test_trials_run_on_both_engines_and_an_image_that_one_lacks_is_sent_there_first(
    project: pytest.Pytester, other: OwnEngine, image: str
) -> None:
    other.client("rmi", "--force", image)
    result = project.runpytest_subprocess("--super-agent=gold", "-n2", ".")
    result.assert_outcomes(passed=6)
    assert [line for line in result.outlines if "sent to" in line] == [
        f"image {image} ({int(local('inspect', '-f', '{{.Size}}', image).stdout) / 1e6:.0f} MB): "
        f"sent to {away(other)}"
    ]
    assert {row["engine"] for row in rows(project)} == {"default", away(other)}
    assert len({row["software"] for row in rows(project)}) == 1
    until(lambda: not what_is_left(project, other), 10)
    again = project.runpytest_subprocess("--super-agent=gold", "-k", "t1 or t2", ".")
    again.assert_outcomes(passed=2)
    assert "sent to" not in again.stdout.str()


def test_a_snapshot_of_one_engine_serves_the_other(project: pytest.Pytester, other: OwnEngine) -> None:
    check = "__import__('os').path.getsize('/workspace/stamp') + 5"
    prefix = ["!sleep 1.2; cat /proc/sys/kernel/random/uuid > stamp"]
    solution = {"cells": [check]}
    write_task(project, "t9", set="masked", category="data", pre_execute=prefix, solution=solution)
    result = project.runpytest_subprocess("--super-agent=gold", "-n2", "--super-epochs=6", "t9.task.yaml")
    result.assert_outcomes(passed=6)
    assert {row["engine"] for row in rows(project)} == {"default", away(other)}
    assert len(list((project.path / "cache").glob("**/snapshots/*.tar"))) == 1


def test_a_different_image_is_refused_before_anything_runs(
    project: pytest.Pytester, other: OwnEngine
) -> None:
    write_task(project, "t1", sandbox={"image": "tiny:1"})
    other.make_tiny_image()
    archive = other.root / "tree.tar"
    try:
        local("import", "--change", "ENV DIFFERENT=1", str(archive), "tiny:1")
        result = project.runpytest_subprocess("--super-agent=gold", "-n2", ".")
    finally:
        local("rmi", "tiny:1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    expected = f"*the image tiny:1 is not the same on the engines default (sha256:*) and {away(other)} (*"
    result.stderr.fnmatch_lines([expected])
    assert not (project.path / ".super/runs/latest").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nokey", "Permission denied"),
        ("stranger", "Host key verification failed"),
        ("nowhere.invalid", "Could not resolve hostname"),
        ("away/no/such/socket", "open failed"),
    ],
)
def test_an_engine_that_ssh_does_not_reach_is_one_message(
    project: pytest.Pytester, other: OwnEngine, name: str, words: str
) -> None:
    result = project.runpytest_subprocess("--super-agent=gold", f"--super-engine=default,ssh://{name}", ".")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*no container engine answers at ssh://{name} (*{words}*): start it*"])
    assert "ResourceWarning" not in result.stderr.str()
    until(lambda: not list((other.root / "tmp").glob("pytest-super-tunnel-*")), 10)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_leaves_nothing_on_any_engine(
    project: pytest.Pytester, other: OwnEngine, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "--super-agent=sleeper:Sleeper", "-n2", "."],
        cwd=project.path,
        stdout=subprocess.DEVNULL,
    )
    until(lambda: len(list(project.path.glob("sleeping-*"))) == 2)
    os.kill(process.pid, number)
    process.wait(60)
    until(lambda: not what_is_left(project, other), 30)


def test_a_sweep_covers_all_engines(project: pytest.Pytester, other: OwnEngine, image: str) -> None:
    dead = ["--label", "pytest-super=1", "--label", "pytest-super.owner=another:1:1"]
    other.make_tiny_image()
    for client, name in ((local, image), (other.client, "tiny:1")):
        created = client("create", *dead, "--name", f"pytest-super-0-{10**9}", name, "cat")
        assert created.returncode == 0, created.stderr
    project.runpytest_subprocess("--super-agent=gold", "t1.task.yaml").assert_outcomes(passed=1)
    for client in (local, other.client):
        assert not ids(client, "--filter", "label=pytest-super.owner=another:1:1")


# Last, because the other engine is another process then.
@pytest.mark.parametrize(
    ("dies", "words"), [("tunnel", "no container engine answers at"), ("engine", "the engine")]
)
def test_an_engine_that_dies_makes_errors_of_its_own_trials_alone(
    project: pytest.Pytester,
    other: OwnEngine,
    ssh: Path,
    monkeypatch: pytest.MonkeyPatch,
    dies: str,
    words: str,
) -> None:
    server = (ssh.parent / "pid").read_text()
    kill = f"kill -KILL {other.process.pid}" if dies == "engine" else f"pkill -KILL -P {server}"
    monkeypatch.setenv("KILL", kill)
    try:
        result = project.runpytest_subprocess("--super-agent=killer:Killer", "-n2", ".")
        left = ids(local, "--filter", f"label=pytest-super.run={latest(project)}")
    finally:
        other.end()
        other.start()
    errors = [row for row in rows(project) if row["error"]]
    assert 1 <= len(errors) <= 2
    assert {row["engine"] for row in errors} == {away(other)}
    assert {row["stop_reason"] for row in errors} == {"error"}
    assert all(f"{words} {away(other)} " in row["error"] for row in errors)
    others = [row for row in rows(project) if not row["error"]]
    assert len(errors) + len(others) == 6
    assert {(row["engine"], row["solved"]) for row in others} == {("default", True)}
    result.assert_outcomes(passed=len(others), errors=len(errors))
    assert "ResourceWarning" not in result.stdout.str() + result.stderr.str()
    assert not left
    until(lambda: not what_is_left(project, other), 10)


def latest(project: pytest.Pytester) -> str:
    return (project.path / ".super/runs/latest").resolve().name
