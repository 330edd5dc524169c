"""What is told when the engine itself dies: an engine of the test's own, so that no other is disturbed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docker.conftest import unavailable
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

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
def root() -> Iterator[Path]:
    """The engine's folder; a short path, because sockets are in it."""
    if os.geteuid() or not (shutil.which("dockerd") and shutil.which("unshare")):
        unavailable("needs root, dockerd and unshare, to start an engine of its own")
    folder = Path(tempfile.mkdtemp(prefix="eng", dir="/tmp"))
    yield folder
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((path for path in mounts if path.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "-l", mount], check=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_engine(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    # In a network of its own: an engine that starts without a bridge removes the bridge of every other.
    command = f"unshare --net dockerd --data-root {root}/data --exec-root {root}/exec --pidfile {root}/pid"
    command += f" --bridge none --iptables=false --ip6tables=false -H unix://{root}/s"
    with open(root / "log", "wb") as log:
        engine = subprocess.Popen(command.split(), stdout=log, stderr=log)
    try:
        until(lambda: run_client(root, "version").returncode == 0, 60)
        make_tiny_image(root)
        yield engine
    finally:
        end_processes(root, engine)


def run_client(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["docker", "-H", f"unix://{root}/s", *arguments], capture_output=True)


def make_tiny_image(root: Path) -> None:
    """An image with `cat` alone and the libraries it is linked with."""
    cat = shutil.which("cat") or "/bin/cat"
    linked = subprocess.run(["ldd", cat], capture_output=True, text=True, check=True).stdout
    for source in re.findall(r"(/\S+) \(", linked):
        target = root / "tree" / source.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (root / "tree" / "bin").mkdir(exist_ok=True)
    shutil.copy(cat, root / "tree" / "bin" / "cat")
    subprocess.run(["tar", "-C", root / "tree", "-cf", root / "tree.tar", "."], check=True)
    imported = run_client(root, "import", f"{root}/tree.tar", "tiny:1")
    assert imported.returncode == 0, imported.stderr


def end_processes(root: Path, engine: subprocess.Popen[bytes]) -> None:
    """The engine, its containerd and the shims that survive them."""
    engine.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        engine.wait(20)
    engine.kill()
    engine.wait()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{root}/".encode() in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_engine_that_dies_is_not_the_agents_failure(
    root: Path, own_engine: subprocess.Popen[bytes], how: signal.Signals
) -> None:
    environment = dict(os.environ, DOCKER_HOST=f"unix://{root}/s")
    trial = subprocess.Popen(
        [sys.executable, "-c", TRIAL], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert trial.stdout is not None
    assert trial.stdout.readline() == "alive\n"
    own_engine.send_signal(how)
    output, _ = trial.communicate(timeout=60)
    assert output.startswith("EngineError"), output
    assert output.endswith("closed\n")


@pytest.mark.usefixtures("own_engine")
def test_no_number_of_later_events_hides_that_a_container_was_killed_from_outside(root: Path) -> None:
    environment = dict(os.environ, DOCKER_HOST=f"unix://{root}/s")
    trial = subprocess.run([sys.executable, "-c", KILL], env=environment, capture_output=True, text=True)
    assert trial.stdout.startswith("EngineError the container was killed from outside"), trial
