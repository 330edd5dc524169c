"""Workers on the nodes of a Slurm cluster: three on this machine, which share its files and its kernel.

Each test runs with containers, and without an engine, in namespaces that start from an unpacked image.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.kernel.providers.bwrap import why_not_isolated, why_unusable
from pytest_super.kernel.providers.unpacked_image import image_in
from tests.docker.conftest import unavailable
from tests.kernel.test_bubblewrap import inhabitants
from tests.waiting import until

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.slurm

CLUSTER = Path(__file__).with_name("slurm_cluster")
# A job goes to the node with the fewest jobs. A node has memory for two: one can replace that of a dead node.
ON_NODES = ("--super-machines=slurm:3", "--super-srun=--mem=2000")
SHIPPED = Path(__file__).parents[2] / "tasks"
TASKS = ("one", "two", "three")

CONFTEST = """
import os
from pathlib import Path

def pytest_runtest_setup(item):
    Path("node-" + os.environ.get("SLURMD_NODENAME", "none")).touch()
"""
# Its first run of a task waits for a file.
AGENT = """
import time
from pathlib import Path

class Waiter:
    def run(self, trial):
        trial.execute("print('begun')")
        begun = Path("begun-" + trial.task.id)
        is_first = not begun.exists()
        begun.open("a").write("x")
        while is_first and not (Path("go").exists() or Path("go-" + trial.task.id).exists()):
            time.sleep(0.1)
        trial.submit(42)
"""


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a running cluster."""
    if shutil.which("slurmctld") is None or os.getuid() != 0:
        unavailable("a Slurm cluster needs root and Debian's packages slurm-wlm and munge")
    folder = tmp_path_factory.mktemp("slurm")
    try:
        subprocess.run([CLUSTER, "start", folder], check=True)
        yield folder
    finally:
        subprocess.run([CLUSTER, "stop", folder])


@pytest.fixture
def folder_for_sandboxes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder that other users reach, as a sandbox of root needs it."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def unpacked_only(unpacked: Path, folder_for_sandboxes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    """The unpacked image, where no engine answers and user namespaces are open and isolate."""
    if reason := why_unusable() or why_not_isolated():
        unavailable(reason)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    return unpacked


@pytest.fixture(params=["docker", "bubblewrap"])
def project(
    pytester: pytest.Pytester, cluster: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> pytest.Pytester:
    monkeypatch.setenv("SLURM_CONF", str(cluster / "slurm.conf"))
    image = request.getfixturevalue("image" if request.param == "docker" else "unpacked_only")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(agent=AGENT)
    pytester.makeini(f"[pytest]\npythonpath = .\nsuper_image = {image}\nsuper_sandbox = {request.param}\n")
    for number, id in enumerate(TASKS):
        solution = {"cells": [f"6 * {7 if id != 'two' else 8}"]}
        task = {"id": id, "set": "expert", "query": "q", "answer": 42, "solution": solution}
        (pytester.path / f"{number}.task.yaml").write_text(json.dumps(task))
    return pytester


def jobs(*options: str) -> list[str]:
    command = ["squeue", "--noheader", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def results(project: pytest.Pytester) -> list[dict[str, Any]]:
    lines = (project.path / ".super/runs/latest/results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def table(result: pytest.RunResult) -> list[str]:
    lines = iter(result.outlines)
    next(line for line in lines if line.startswith("set "))
    return list(iter(lambda: next(lines), ""))


def start(project: pytest.Pytester) -> subprocess.Popen[bytes]:
    """A run whose three trials are under way, each on a node of its own. Its output goes to `output.txt`."""
    with (project.path / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "--super-agent=agent:Waiter", ".", *ON_NODES],
            cwd=project.path,
            stdout=output,
            stderr=output,
        )
    until(lambda: len(list(project.path.glob("begun-*"))) == len(TASKS), 180)
    return process


def test_a_run_on_three_nodes_has_the_table_of_three_local_workers(project: pytest.Pytester) -> None:
    on_nodes = project.runpytest_subprocess("--super-agent=gold", ".", *ON_NODES)
    assert {path.name for path in project.path.glob("node-*")} == {f"node-node{n}" for n in (1, 2, 3)}
    assert {result["isolated"] for result in results(project)} == {True}
    local = project.runpytest_subprocess("--super-agent=gold", ".", "-n3")
    on_nodes.assert_outcomes(passed=2, failed=1)
    assert table(on_nodes) == table(local) != []


def test_the_trial_of_a_node_that_dies_is_run_again(project: pytest.Pytester) -> None:
    process = start(project)
    # The node with all that runs on it, as if its power failed.
    job = jobs("--nodelist=node2", "--format=%A")[0]
    subprocess.run(["pkill", "-KILL", "-f", rf"slurmd -N node2|slurmstepd: \[{job}\.0\]"], check=True)
    output = project.path / "output.txt"
    until(lambda: "replacing crashed worker" in output.read_text())
    (project.path / "go").touch()
    assert process.wait(120) == 0
    assert "3 passed, 1 requeued" in output.read_text()
    assert not jobs()


def test_a_killed_run_leaves_nothing_and_loses_no_trial_that_had_ended(
    project: pytest.Pytester, engine: APIClient, folder_for_sandboxes: Path
) -> None:
    process = start(project)
    (project.path / "go-one").touch()
    until((project.path / ".super/runs/latest/results.jsonl").exists)
    run = (project.path / ".super/runs/latest").resolve().name
    of_run = {"label": f"pytest-super.run={run}"}
    assert len(jobs()) == 3
    assert inhabitants(folder_for_sandboxes) or engine.containers(filters=of_run)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: not jobs() and not engine.containers(all=True, filters=of_run), 30)
    until(lambda: inhabitants(folder_for_sandboxes) in ([], [str(folder_for_sandboxes)]), 30)
    (project.path / "go").touch()
    given = ("--super-agent=agent:Waiter", "--super-resume=latest", ".", *ON_NODES)
    project.runpytest_subprocess(*given).assert_outcomes(passed=3)
    assert [(project.path / f"begun-{id}").read_text() for id in TASKS] == ["x", "xx", "xx"]
    assert list(folder_for_sandboxes.glob("super-*")) == []


def test_the_shipped_tasks_have_the_table_of_local_workers_without_an_engine(
    pytester: pytest.Pytester, cluster: Path, unpacked_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(cluster / "slurm.conf"))
    pytester.makeini("[pytest]\n")
    given = (
        str(SHIPPED),
        "--super-agent=gold",
        "--super-sandbox=bubblewrap",
        f"--super-image={unpacked_only}",
        f"--super-dir={pytester.path / '.super'}",
    )
    sample = os.environ.get("SUPER_TEST_SAMPLE", "1000")
    on_nodes = pytester.runpytest_subprocess(*given, f"--super-sample={sample}", *ON_NODES)
    local = pytester.runpytest_subprocess(*given, f"--super-sample={sample}", "-n3")
    assert on_nodes.ret == local.ret == 0
    assert table(on_nodes) == table(local) != []
    # Tasks with the network are not isolated from it.
    shown = {(one["sandbox"], one["software"]) for one in results(pytester)}
    assert shown == {("bubblewrap", image_in(str(unpacked_only)).software)}
