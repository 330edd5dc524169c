"""What is told when the engine itself dies: an engine of the test's own, so that no other is disturbed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.docker.own_engine import OwnEngine, engine_of_its_own

pytestmark = pytest.mark.docker

# Runs `cat` in a container, says so, and reports how the stream's end is explained.
TRIAL = """
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
sandbox = DockerSandbox(SandboxSpec(), SandboxSettings(image="tiny:1"), command=["/bin/cat"])
stream = sandbox.open()
stream.write(b"alive")
print(stream.read(5).decode(), flush=True)
while stream.read(100): pass
try:
    print("died:", sandbox.cause_of_death(), flush=True)
except Exception as error:
    print(type(error).__name__, error, flush=True)
sandbox.close()
print("closed", flush=True)
"""

# Ends the container through the engine, and asks why it ended after many other events.
KILL = """
from pytest_super.kernel.providers.docker.engine import connect
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
sandbox = DockerSandbox(SandboxSpec(), SandboxSettings(image="tiny:1"), command=["/bin/cat"])
stream = sandbox.open()
connect().kill(sandbox._container)
while stream.read(100): pass
for number in range(260):
    connect().tag("tiny:1", "tiny", str(number))
try:
    print("died:", sandbox.cause_of_death())
except Exception as error:
    print(type(error).__name__, error)
sandbox.close()
"""


@pytest.fixture
def own_engine() -> Iterator[OwnEngine]:
    with engine_of_its_own() as engine:
        engine.make_tiny_image()
        yield engine


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_engine_that_dies_is_not_the_agents_failure(own_engine: OwnEngine, how: signal.Signals) -> None:
    environment = dict(os.environ, DOCKER_HOST=own_engine.url)
    trial = subprocess.Popen(
        [sys.executable, "-c", TRIAL], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert trial.stdout is not None
    assert trial.stdout.readline() == "alive\n"
    own_engine.process.send_signal(how)
    output, _ = trial.communicate(timeout=60)
    assert output.startswith("EngineError"), output
    assert output.endswith("closed\n")


def test_no_number_of_later_events_hides_that_a_container_was_killed_from_outside(
    own_engine: OwnEngine,
) -> None:
    environment = dict(os.environ, DOCKER_HOST=own_engine.url)
    trial = subprocess.run([sys.executable, "-c", KILL], env=environment, capture_output=True, text=True)
    assert trial.stdout.startswith("EngineError the container was killed from outside"), trial
