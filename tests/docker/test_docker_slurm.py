"""Workers on the nodes of a Slurm cluster, as docs/reference/xdist.md starts them: three on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docker.conftest import unavailable
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

pytestmark = pytest.mark.slurm

CLUSTER = Path(__file__).with_name("slurm_cluster")
# A job goes to the node with the fewest jobs. A node has memory for two: one can replace that of a dead node.
ON_NODES = ("-d", "--tx", f"3*popen//python=srun --unbuffered -n1 --mem=2000 {sys.executable}")
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
        if not begun.exists():
            begun.touch()
            while not Path("go").exists():
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
def project(
    pytester: pytest.Pytester, cluster: Path, image: str, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    monkeypatch.setenv("SLURM_CONF", str(cluster / "slurm.conf"))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(agent=AGENT)
    pytester.makeini(f"[pytest]\npythonpath = .\nsuper_image = {image}\nsuper_sandbox = docker\n")
    for number, id in enumerate(TASKS):
        solution = {"cells": [f"6 * {7 if id != 'two' else 8}"]}
        task = {"id": id, "set": "expert", "query": "q", "answer": 42, "solution": solution}
        (pytester.path / f"{number}.task.yaml").write_text(json.dumps(task))
    return pytester


def jobs(*options: str) -> list[str]:
    command = ["squeue", "--noheader", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


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
    until(lambda: len(list(project.path.glob("begun-*"))) == len(TASKS))
    return process


def test_a_run_on_three_nodes_has_the_table_of_three_local_workers(project: pytest.Pytester) -> None:
    on_nodes = project.runpytest_subprocess("--super-agent=gold", ".", *ON_NODES)
    assert {path.name for path in project.path.glob("node-*")} == {f"node-node{n}" for n in (1, 2, 3)}
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


def test_a_killed_run_leaves_no_job_and_no_container(project: pytest.Pytester, engine: APIClient) -> None:
    process = start(project)
    run = (project.path / ".super/runs/latest").resolve().name
    of_run = {"label": f"pytest-super.run={run}"}
    assert (len(jobs()), len(engine.containers(filters=of_run))) == (3, 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: not jobs() and not engine.containers(all=True, filters=of_run), 30)
