"""LocalSandbox: what every sandbox must do, and what this one promises of its own."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pytest_super.errors import InfrastructureError
from pytest_super.kernel import link
from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance import *  # noqa: F403
from pytest_super.kernel.conformance.support import printed, started, until
from pytest_super.kernel.inside.processes import parents
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.kernel.sandbox import Sandbox
from pytest_super.platform import marked_processes
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.kernel.conftest import FORKS


@pytest.fixture(scope="module")
def run() -> str:
    """The run whose sandboxes are forks; none where they are interpreters of their own, as in bubblewrap."""
    return FORKS if sys.platform == "linux" else ""


@pytest.fixture(scope="module")
def sandbox_factory(run: str) -> Callable[[SandboxSpec], LocalSandbox]:
    return lambda spec: LocalSandbox(env=spec.env, run=run)


@pytest.fixture
def sandbox(run: str) -> LocalSandbox:
    return LocalSandbox(run=run)


@pytest.fixture
def remains() -> Callable[[Sandbox], list[str]]:
    return lambda sandbox: processes_of(getattr(sandbox, "marker", ""), sandbox.workdir)


def processes_of(marker: str, workdir: str) -> list[str]:
    """Those with the mark, which forks lack, and those that work in a folder of the sandbox."""
    found = [str(pid) for pid in marked_processes(marker)]
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(path / "cwd").startswith(workdir):
                found.append(path.name)
    return found


WHEEL = {
    "tinypackage.py": "value = 42\n",
    "tinypackage-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tinypackage\nVersion: 1.0\n",
    "tinypackage-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "tinypackage-1.0.dist-info/RECORD": "",
}
# Starts a process without a living parent inside and without a variable by which it can be found.
ORPHAN = """
import subprocess
done = subprocess.run("env -i setsid sleep 600 > /dev/null & echo $!", shell=True)
"""
HOST = """
import sys
import time
from pytest_super.kernel import link
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.local import LocalSandbox
link.OWN_SILENCE_SECONDS = float(sys.argv[1])
link.PING_SECONDS = link.OWN_SILENCE_SECONDS / 4
sandbox = LocalSandbox(run=sys.argv[3])
kernel = Kernel(sandbox)
kernel.start()
kernel.execute("import subprocess; child = subprocess.Popen(['setsid', 'sleep', '600'])")
orphan = kernel.execute(sys.argv[2]).text
print(sandbox.marker, sandbox.workdir, orphan, flush=True)
kernel.execute("import time; time.sleep(600)")
"""


@contextmanager
def host_process(
    run: str, own_silence_seconds: float = 60
) -> Iterator[tuple[subprocess.Popen[str], str, str, int]]:
    """A process with a sandbox in which a cell runs, its marker, its working directory and an orphan."""
    command = [sys.executable, "-c", HOST, str(own_silence_seconds), ORPHAN, run]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        marker, workdir, orphan = host.stdout.readline().split()
        try:
            yield host, marker, workdir, int(orphan)
        finally:
            host.kill()


def make_wheel(folder: Path, version: str = "1.0") -> Path:
    path = folder / f"tinypackage-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in WHEEL.items():
            wheel.writestr(
                name.replace("e-1.0", f"e-{version}"), text.replace("\nVersion: 1.0", f"\nVersion: {version}")
            )
    return path


def test_keys_of_the_host_do_not_arrive_and_only_packages_are_outside(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "PYTHONPATH", "PIP_TARGET"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PIP_TIMEOUT", "7")
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    with started(LocalSandbox(run=run)) as kernel:
        inside = json.loads(printed(kernel, "import json, os; print(json.dumps(dict(os.environ)))"))
        assert kernel.files.entries() == []
        assert printed(kernel, "import pytest; print(pytest.__file__)") == f"{pytest.__file__}\n"
    assert "secret" not in inside.values()
    assert (inside["PIP_TIMEOUT"], inside["http_proxy"]) == ("7", "http://proxy.invalid:1")
    root = Path(kernel.workdir).parent
    assert {Path(inside[name]).parent for name in ("HOME", "TMPDIR", "VIRTUAL_ENV")} == {root}
    assert inside["PATH"].split(":")[0] == f"{root}/venv/bin"


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["!pip", "%pip"])
def test_an_installation_touches_nothing_of_the_host(kernel: Kernel, tmp_path: Path, installer: str) -> None:
    kernel.files.write("tinypackage-1.0-py3-none-any.whl", make_wheel(tmp_path).read_bytes())
    command = f"{installer} install --no-index --no-deps ./tinypackage-1.0-py3-none-any.whl"
    assert "Successfully installed" in kernel.execute(command, timeout=120).text
    result = kernel.execute("import tinypackage; print(tinypackage.value, tinypackage.__file__)", timeout=60)
    assert result.text.startswith(f"42 {Path(kernel.workdir).parent}/venv/lib/")
    assert importlib.util.find_spec("tinypackage") is None


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("PYTHONPATH", "{folder}", "No module named traitlets$"),
        ("PYTHONHASHSEED", "all", "Fatal Python error: .*PYTHONHASHSEED must be"),
    ],
    ids=["kernel", "interpreter"],
)
def test_what_cannot_start_says_why(tmp_path: Path, variable: str, value: str, reason: str) -> None:
    (tmp_path / "ipykernel.py").write_text("raise ImportError('No module named traitlets')")
    broken = LocalSandbox(env={variable: value.format(folder=tmp_path)})
    with pytest.raises(InfrastructureError, match=f"exit code 1: .*{reason}"), started(broken):
        pass


@pytest.mark.slow
def test_the_folder_is_gone_after_close(sandbox: LocalSandbox) -> None:
    with started(sandbox) as kernel:
        kernel.execute("import os; os.mkdir('locked', 0o500); os.mkfifo('pipe')", timeout=30)
        # Deeper than Python's recursion, and with longer paths than the system's calls accept.
        kernel.execute("for _ in range(2500):\n    os.mkdir('deep'); os.chdir('deep')", timeout=30)
        assert Path(sandbox.workdir).exists()
    assert not Path(sandbox.workdir).parent.exists()


def test_a_kept_folder_stays_and_can_be_entered(sandbox: LocalSandbox) -> None:
    with started(sandbox) as kernel:
        kernel.execute("!echo kept > result.txt", timeout=30)
        command = sandbox.keep()
    looking = ["bash", "-c", f"{command} -c 'cat result.txt; which python'"]
    shown = subprocess.run(looking, capture_output=True, text=True, check=True)
    root = Path(sandbox.workdir).parent
    assert shown.stdout == f"kept\n{root}/venv/bin/python\n"
    shutil.rmtree(root)
    with pytest.raises(InfrastructureError, match="gone"):
        sandbox.keep()


def test_a_host_that_is_stopped_for_too_long_leaves_nothing(run: str) -> None:
    with host_process(run, own_silence_seconds=1) as (host, marker, workdir, _):
        # The first ping, after a quarter of a second, tells the bridge how long it is to wait for the next.
        time.sleep(0.6)
        host.send_signal(signal.SIGSTOP)
        assert until(lambda: not processes_of(marker, workdir))


SUSPENDED = """
import sys
from pytest_super.kernel import link
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.local import LocalSandbox
link.PING_SECONDS = 0.25
kernel = Kernel(LocalSandbox(run=sys.argv[1]))
kernel.start()
link.SILENCE_SECONDS = 1.0
print("ready", flush=True)
input()
print(kernel.execute("print('goes on')").text, end="")
kernel.close()
"""


def test_a_host_that_was_suspended_finds_its_sandbox_alive(run: str) -> None:
    command = [sys.executable, "-c", SUSPENDED, run]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        host.send_signal(signal.SIGSTOP)
        time.sleep(2)
        host.send_signal(signal.SIGCONT)
        assert host.communicate("\n", timeout=60)[0] == "goes on\n"


KILLED = "ended with exit code 3: the bridge was killed by signal 9"


# Of forks, the server that forks them would end what is left, too.
@pytest.mark.parametrize("run", ["", FORKS], ids=["alone", "fork"])
def test_nothing_outlives_a_killed_bridge(sandbox: LocalSandbox, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    with started(sandbox) as kernel:
        # What removes the folders imports nothing from them.
        kernel.files.write("subprocess.py", f"open({str(mark)!r}, 'w')".encode())
        kernel.execute("import subprocess; child = subprocess.Popen(['setsid', 'sleep', '600'])", timeout=30)
        orphan = int(kernel.execute(ORPHAN, timeout=30).text)
        assert orphan in parents()
        result = kernel.execute("import os, time; os.kill(os.getppid(), 9); time.sleep(600)", timeout=30)
        assert (result.outcome, result.detail) == (Outcome.SANDBOX_LOST, KILLED)
        # Before it is closed: the process that closes it can be killed, too.
        assert until(lambda: not processes_of(sandbox.marker, sandbox.workdir) and orphan not in parents())
        assert until(lambda: not Path(sandbox.workdir).parent.exists())
        assert not mark.exists()


def test_a_log_of_any_size_is_not_read_into_memory(sandbox: LocalSandbox) -> None:
    with started(sandbox) as kernel:
        enlarge = f"""
import os, time
bridge = os.getppid()
with open(f"/proc/{{bridge}}/stat") as stat:
    supervisor = stat.read().rpartition(")")[2].split()[1]
os.truncate(f"/proc/{{supervisor}}/fd/2", {2**42})
os.kill(bridge, {signal.SIGINT:d})
time.sleep(600)
"""
        result = kernel.execute(enlarge, timeout=30)
        assert (result.outcome, result.detail) == (Outcome.SANDBOX_LOST, "ended with exit code 1")


@pytest.mark.slow
def test_a_bridge_that_was_stopped_is_lost_even_when_a_large_cell_is_sent(
    sandbox: LocalSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "SILENCE_SECONDS", 2)
    monkeypatch.setattr(link, "PING_SECONDS", 0.5)
    with started(sandbox) as kernel:
        bridge = int(kernel.execute("import os; print(os.getppid())", timeout=30).text)
        os.kill(bridge, signal.SIGSTOP)
        result = kernel.execute("#" * 20_000_000)
        assert result.outcome is Outcome.SANDBOX_LOST
        assert "did not answer" in result.detail


@pytest.mark.parametrize("stopped", [0, 2])
def test_a_killed_host_leaves_nothing_even_when_the_bridge_was_stopped(run: str, stopped: int) -> None:
    with host_process(run) as (host, marker, workdir, orphan):
        bridge = parents()[orphan]
        for pid in (bridge, parents()[bridge])[:stopped]:
            os.kill(pid, signal.SIGSTOP)
        host.kill()
    assert until(lambda: not processes_of(marker, workdir) and orphan not in parents())
    assert until(lambda: not Path(workdir).parent.exists())


def test_a_stopped_bridge_does_not_keep_its_sandbox_from_being_closed(sandbox: LocalSandbox) -> None:
    with started(sandbox) as kernel:
        orphan = int(kernel.execute(ORPHAN, timeout=30).text)
        os.kill(parents()[orphan], signal.SIGSTOP)
    sandbox.close()
    assert orphan not in parents()
