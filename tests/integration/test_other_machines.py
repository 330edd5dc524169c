"""Workers on other machines: all ask one gateway, and machines that cannot take part are refused.

A machine is a Python with a folder of temporary files of its own, in which the gateway's socket is not.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_super.model.relay import Relay
from tests.integration.conftest import Project
from tests.integration.test_model import ASKER, LOOK, MODEL, NEEDS_PROC, asking_script, gateways
from tests.openai_server import OpenAIServer
from tests.waiting import until

pytestmark = [pytest.mark.usefixtures("openai_environment"), NEEDS_PROC]

# Notes where each trial ran, what its worker has of the model, and the gateways that there are.
PLACED = """
import glob, os, signal, sys, tempfile
from pathlib import Path
import agent

def gateways():
    run = Path(".super/runs/latest").resolve().name
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = Path(path).read_text(errors="replace").split("\\0")
        except OSError:
            continue
        if "pytest_super.model.gateway" in words and Path(words[-2]).name == run:
            yield int(Path(path).parent.name)

agent.gateway = lambda: next(gateways())

class Agent(agent.Agent):
    def run(self, trial):
        try:
            super().run(trial)
        finally:
            place = Path(tempfile.gettempdir())
            has = [os.environ.get("OPENAI_API_KEY"), "litellm" in sys.modules, *place.glob("pytest-super-*")]
            with open("places", "a") as file:
                file.write(f"{place.name} {has} {len(list(gateways()))}\\n")

# Dies in its first trial, while it waits for an answer.
class Dying(Agent):
    def run(self, trial):
        if not Path("died").exists():
            Path("died").touch()
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            signal.setitimer(signal.ITIMER_REAL, 1.0)
        super().run(trial)
"""


@pytest.fixture
def asking(project: Project) -> Project:
    project.write("agent.py", ASKER)
    project.write("placed.py", PLACED)
    for number in range(6):
        project.add_task(f"t{number}")
    return project


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder with a name so short that a socket's path could begin with it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def machine(temporary: Path, name: str, changes: str = "") -> str:
    """The option for a worker on another machine, without a key, whose Python first runs `changes`."""
    folder = temporary / name
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        f"import socket\nsocket.gethostname = lambda: {name!r}\n{changes}"
    )
    environment = f"-u OPENAI_API_KEY TMPDIR={folder} PYTHONPATH={folder}"
    return f"--tx=popen//python=env {environment} {sys.executable}"


@pytest.fixture
def relayed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What workers send the controller for the gateway: whether it is a call, else that it is to start."""
    found, accept = list[bool](), Relay._accept

    def note(relay: Relay, call: Any) -> None:
        found.append(call is not None)
        accept(relay, call)

    monkeypatch.setattr(Relay, "_accept", note)
    return found


@pytest.fixture
def on_two(temporary: Path) -> list[str]:
    return ["-d", machine(temporary, "one"), machine(temporary, "two")]


def noted(project: Project) -> list[str]:
    return sorted(set((project.path / "places").read_text().splitlines()))


def test_all_workers_ask_one_gateway_which_only_the_controllers_machine_reaches(
    asking: Project, openai_server: OpenAIServer, on_two: list[str], relayed: list[bool]
) -> None:
    openai_server.by(lambda _: "submit 42" if len(openai_server.requests) > 12 else "look around")
    result = asking.run(MODEL, *on_two, agent="placed:Agent")
    result.assert_outcomes(passed=6)
    assert noted(asking) == ["one [None, False] 1", "two [None, False] 1"]
    assert len(asking.calls) == len(openai_server.requests)
    assert sum(row["prompt_tokens"] for row in asking.results.values()) == 104 * len(openai_server.requests)
    assert not relayed[0]
    assert sum(relayed) >= len(openai_server.requests)
    until(lambda: not gateways(asking))


def test_a_worker_on_the_controllers_machine_uses_its_socket(
    asking: Project, openai_server: OpenAIServer, relayed: list[bool]
) -> None:
    openai_server.always("submit 42")
    asking.run(MODEL, "-d", "--tx=popen").assert_outcomes(passed=6)
    assert relayed == []


def test_the_runs_limit_of_cost_is_that_of_all_machines_and_outlives_the_gateway(
    asking: Project, openai_server: OpenAIServer, on_two: list[str]
) -> None:
    openai_server.latency = 0.05
    openai_server.by(lambda _: "kill" if len(openai_server.requests) == 10 else "look around")
    # Both workers ask when the gateway is killed. The next one knows what their calls cost.
    cost = 104 * 2.5e-6 + 2 * 10e-6
    result = asking.run(MODEL, f"--super-max-cost={cost * 40.5}", *on_two, agent="placed:Agent")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        ["*the run has cost $0.0112 of the * allowed: raise --super-max-cost to go on*"]
    )
    assert sum(call["cost_usd"] for call in asking.calls) < cost * 41
    assert 40 <= len(openai_server.requests) <= 43


def test_the_trial_of_a_worker_that_dies_is_run_again(
    asking: Project, openai_server: OpenAIServer, temporary: Path
) -> None:
    openai_server.reply(openai_server.fault("hang"))
    openai_server.always("submit 42")
    result = asking.run(MODEL, "-d", machine(temporary, "one"), agent="placed:Dying")
    assert result.ret == pytest.ExitCode.OK
    assert "6 passed, 1 requeued" in result.stdout.str()
    assert noted(asking) == ["one [None, False] 1"]


def test_nothing_outlives_a_controller_that_is_killed(asking: Project, temporary: Path) -> None:
    script = asking_script(asking, [LOOK, "wait"])
    command = [sys.executable, "-m", "pytest", "--super-agent=agent:Agent", "--super-sandbox=local", script]
    command += ["-d", machine(temporary, "one")]
    process = subprocess.Popen(
        command, cwd=asking.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    )
    until((asking.path / "waiting").exists)
    assert len(gateways(asking)) == 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not gateways(asking) and not is_group(process.pid))


def is_group(process: int) -> bool:
    """Whether a process of its group lives."""
    try:
        os.killpg(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            "import os.path\nos.path.isdir = lambda _: False",
            "it does not see */.super, where this machine writes the results: put the project on *",
        ),
        (
            "from importlib import metadata\nclass Old: version = '0.0.1'\n"
            "metadata.distributions = lambda **_: [Old]",
            "its *python* has pytest-super 0.0.1, this machine's pytest-super *: install the same on both",
        ),
        (
            "import time\nnow = time.time\ntime.time = lambda: now() + 600",
            "its clock is [56][09][09] s ahead, so results would have wrong times, *: set the clocks, *",
        ),
    ],
    ids=["folder", "version", "clock"],
)
def test_a_machine_that_cannot_take_part_is_refused_before_the_first_trial(
    asking: Project, openai_server: OpenAIServer, temporary: Path, capfd: Any, changes: str, message: str
) -> None:
    result = asking.run(MODEL, "-d", machine(temporary, "node7", changes))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: node7 cannot have a worker of the run: {message}"])
    assert "Traceback" not in "".join(capfd.readouterr())  # The worker's, too.
    assert not openai_server.requests
    assert not list((asking.path / ".super").rglob("*"))
