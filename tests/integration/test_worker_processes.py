"""Many workers are forks of one process, and cannot be told from interpreters of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Project
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forks on Linux alone")

# A client that is killed before it asks connects in place of the first worker.
TELL = """
import json, os, random, socket, sys
from pathlib import Path
import pytest

@pytest.hookimpl(trylast=True)
def pytest_xdist_setupnodes(config, specs):
    if processes := config.pluginmanager.get_plugin("super-worker-processes"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(processes.server.socket))

def pytest_unconfigure(config):
    worker = getattr(config, "workerinput", {}).get("workerid", "controller")
    told = {
        "parent": Path(f"/proc/{os.getppid()}/cmdline").read_text(),
        "random": random.random(),
        "folder": os.getcwd(),
        "variable": os.environ["TOLD"],
        "main": sys.modules["__main__"].__name__,
    }
    Path(f"{worker}.json").write_text(json.dumps(told))
"""
SERVER = "forks/server.py"


def told(project: Project) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in project.path.glob("[gc]*.json")}


@pytest.mark.parametrize(("workers", "are_forks"), [(1, False), (4, True)])
def test_a_fork_is_like_an_interpreter_of_its_own(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: int, are_forks: bool
) -> None:
    monkeypatch.setenv("TOLD", "me")
    project.add_to_conftest(TELL)
    project.add_task("right")
    result = project.run(f"-n{workers}")
    assert result.ret == pytest.ExitCode.OK
    facts = told(project)
    controller = facts.pop("controller")
    assert set(facts) == {f"gw{number}" for number in range(workers)}
    assert {SERVER in one["parent"] for one in facts.values()} == {are_forks}
    assert len({one["random"] for one in facts.values()}) == workers
    for one in facts.values():
        assert (one["folder"], one["variable"]) == (controller["folder"], "me")
        assert one["main"] == "__main__"


def others_of_group(process: int) -> list[int]:
    """The processes that a controller has started in its group."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(path.name)) == process and path.name != str(process):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def test_nothing_outlives_a_controller_that_is_killed(project: Project) -> None:
    project.add_task("hang")
    command = [sys.executable, "-m", "pytest", "--super-agent=agent:Agent", "--super-sandbox=local", "-n4"]
    process = subprocess.Popen(
        command, cwd=project.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    )
    until(lambda: list(project.path.glob(".super/runs/*/trials/hang")))
    assert len(others_of_group(process.pid)) > 4
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not others_of_group(process.pid))


def test_local_kernels_are_forks_of_one_process(project: Project) -> None:
    project.write("conftest.py", "")
    project.write("agent.py", TELLS_OF_ITS_KERNEL)
    for number in range(2):
        project.add_task(f"right-{number}")
    assert project.run("-n2").ret == pytest.ExitCode.OK
    servers = [line.split()[1] for line in (project.path / "arrived").read_text().splitlines()]
    assert len(servers) == 2
    (server,) = set(servers)
    until(lambda: not Path("/proc", server).exists())


# Each trial lasts until both have begun, because the process ends a second after its last sandbox.
TELLS_OF_ITS_KERNEL = """
import time
from pathlib import Path

CELL = '''
import os
assert "inside/warm.py" in open("/proc/self/cmdline").read()
process = os.getpid()
for _ in range(3):
    process = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[1]
print(process)
'''

def arrived():
    return Path("arrived").read_text().splitlines()

class Agent:
    def run(self, trial):
        mine = f"{trial.task.id} {trial.execute(CELL).observation.strip()}"
        with open("arrived", "a") as file:
            file.write(mine + "\\n")
        until = time.monotonic() + 60
        while len(arrived()) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        trial.submit(42)
"""
