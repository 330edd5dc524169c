"""BubblewrapSandbox: what every sandbox must do, and what must not be reachable from inside this one."""

# mypy: disable-error-code="no-redef"
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_super.errors import EngineError, InfrastructureError
from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel

# What every bridge does alike, with cells and programs, is tested with containers and local sandboxes.
from pytest_super.kernel.conformance.ends import *  # noqa: F403
from pytest_super.kernel.conformance.files import *  # noqa: F403
from pytest_super.kernel.conformance.isolation import *  # noqa: F403
from pytest_super.kernel.conformance.support import *  # noqa: F403
from pytest_super.kernel.conformance.support import printed, started, until
from pytest_super.kernel.providers import bubblewrap
from pytest_super.kernel.providers.bubblewrap import BubblewrapSandbox
from pytest_super.kernel.providers.bwrap import can_limit, refusal, way
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import Sandbox, SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
from tests.attacks.trials import results_of

ROOT = Path(__file__).parents[2]
REASON = find_provider("bubblewrap").why_unavailable()
# In CI a machine without it fails.
pytestmark = pytest.mark.skipif(bool(REASON) and "CI" not in os.environ, reason=REASON or "")
SLEEPS = "import subprocess\nchild = subprocess.Popen(['setsid', 'sleep', '600'])"
HOST = f"""
import sys
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.bubblewrap import BubblewrapSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
sandbox = BubblewrapSandbox(SandboxSpec(), SandboxSettings())
kernel = Kernel(sandbox)
kernel.start()
kernel.execute({SLEEPS!r})
print(sandbox.folder, flush=True)
kernel.execute(sys.argv[1])
"""


def make(spec: SandboxSpec | None = None, **settings: object) -> BubblewrapSandbox:
    return BubblewrapSandbox(spec or SandboxSpec(), SandboxSettings(**settings))  # type: ignore[arg-type]


def output_of(kernel: Kernel, *command: str) -> str:
    """Of a program, for which no kernel has to start."""
    result = kernel.run_program(shlex.join(command), {}, {}, timeout=60)
    assert result.outcome is Outcome.OK, result
    return result.text


@pytest.fixture(scope="module")
def sandbox_factory() -> Callable[[SandboxSpec], BubblewrapSandbox]:
    return make


@pytest.fixture
def remains() -> Callable[[Sandbox], list[str]]:
    return lambda sandbox: inhabitants(getattr(sandbox, "folder", Path()))


def inhabitants(folder: Path) -> list[str]:
    """Processes that see the sandbox's folder as a mount, and the folder itself."""
    found = [str(folder)] if folder.exists() else []
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if folder.name in path.read_text():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


# What must not be reachable


def test_the_files_of_the_host_are_not_there(shared_kernel: Kernel, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    home = [path for path in Path.home().iterdir() if path.is_file()]
    paths = [str(path) for path in (secret, ROOT / "pyproject.toml", ROOT / "tasks", "/etc/shadow", *home)]
    seen = f"import os; print([path for path in {paths} if os.access(path, os.R_OK)])"
    assert printed(shared_kernel, seen) == "[]\n"


def test_gold_answers_are_not_there() -> None:
    package = Path(pytest.__file__).parent
    # This package's own installation has tasks among the packages that are visible.
    with started(make(hidden=(ROOT / "tasks", package)), with_kernel=False) as kernel:
        names = r"\( -name '*.task.yaml' -o -name pytest_super \)"
        find = f"find / -path /proc -prune -o {names} -print 2>/dev/null || true"
        found = output_of(kernel, "sh", "-c", find).splitlines()
        assert any(path.endswith("/pytest_super") for path in found)
        assert not any(path.endswith(".task.yaml") for path in found)
        # A folder to hide is empty where its surroundings are visible.
        assert output_of(kernel, "ls", "-A", str(package)) == ""
        assert output_of(kernel, "ls", str(package.parent)) != f"{package.name}\n"


def test_the_system_cannot_be_written(shared_kernel: Kernel) -> None:
    for path in ("/usr/bin/x", "/etc/x", "/x", f"{sys.prefix}/lib/x"):
        result = shared_kernel.execute(f"open({path!r}, 'w')", timeout=30)
        assert "Read-only file system" in result.detail
        assert not Path(path).exists()


def test_no_process_and_no_network_of_the_host_is_seen(shared_kernel: Kernel) -> None:
    code = "import os; print(max(int(name) for name in os.listdir('/proc') if name.isdigit()))"
    assert int(printed(shared_kernel, code)) < 1000
    result = shared_kernel.execute(f"os.kill({os.getpid()}, 0)", timeout=30)
    assert result.detail.startswith("ProcessLookupError")
    connect = "import socket; n = socket.create_connection({!r}, 5)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        result = shared_kernel.execute(connect.format(server.getsockname()), timeout=30)
        assert result.detail.startswith("ConnectionRefusedError")
        assert printed(shared_kernel, "print(socket.if_nameindex())") == "[(1, 'lo')]\n"
        # A task that needs the network has the host's, and is not isolated.
        sandbox = make(SandboxSpec(network=True))
        assert not sandbox.capabilities.isolation
        with started(sandbox, with_kernel=False) as kernel:
            assert output_of(kernel, "python", "-c", connect.format(server.getsockname())) == ""


def test_it_has_no_privilege_and_gets_none(shared_kernel: Kernel) -> None:
    found = printed(shared_kernel, "!grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status")
    assert found.split() == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is not privileged")
def test_each_sandbox_of_root_is_another_user_without_privileges_or_groups() -> None:
    sandboxes, others = (make(), make()), children()
    with started(sandboxes[0], with_kernel=False), started(sandboxes[1], with_kernel=False):
        users = {(sandbox.folder / "work").stat().st_uid for sandbox in sandboxes}
        assert len(users) == 2
        assert not users & {0, 65534}
        for child in children() - others:
            status = Path("/proc", child, "status").read_text().split("\n")
            lines = [line.split() for line in status if line.startswith(("Uid", "Gid", "Gr"))]
            ids = {name: values for name, *values in lines}
            assert set(ids["Uid:"]) == set(ids["Gid:"]) <= {str(user) for user in users}
            assert ids["Groups:"] == []


def children() -> set[str]:
    """The processes that this one has started, the outer bwrap of each sandbox among them."""
    command = ["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())]
    listed = subprocess.run(command, capture_output=True, text=True)
    return {pid for pid, name in map(str.split, listed.stdout.splitlines()) if name == "bwrap"}


def test_a_strict_umask_does_not_keep_the_user_of_root_from_its_sandbox() -> None:
    refused = refusal(way())
    before = os.umask(0o077)
    try:
        # The probe of the machine, too.
        assert refusal.__wrapped__(way()) == refused
        with started(make(), with_kernel=False) as kernel:
            assert output_of(kernel, "python", "-c", "print(6 * 7)") == "42\n"
    finally:
        os.umask(before)


def test_root_without_another_user_id_does_not_isolate_and_says_so() -> None:
    code = """
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec
provider = find_provider("bubblewrap")
print(provider.why_unavailable(), provider.why_not_isolated())
print(provider.make(SandboxSpec(), SandboxSettings()).capabilities.isolation)
"""
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    reason = "bubblewrap does not isolate root (its user namespace has no other user ids)"
    assert shown == [f"None {reason}: run pytest as another user", "False"]


def test_keys_of_the_host_do_not_arrive() -> None:
    given = {"PATH": os.environ["PATH"], "HF_TOKEN": "secret", "PIP_TIMEOUT": "7", "PIP_CACHE_DIR": "/cache"}
    env = {"TASK_SAYS": "this", "LD_AUDIT": "/workspace/task.so"}
    with started(make(SandboxSpec(env=env), environment=given), with_kernel=False) as kernel:
        inside = set(output_of(kernel, "env").splitlines())
        assert {"PIP_TIMEOUT=7", "TASK_SAYS=this", "HOME=/home/sandbox"} <= inside
        assert not {"HF_TOKEN", "PIP_CACHE_DIR"} & {line.partition("=")[0] for line in inside}
        # A task's variables are not those of a program outside.
        assert "LD_AUDIT=/workspace/task.so" in inside
        for child in children():
            for kind in ("environ", "cmdline"):
                assert "task.so" not in Path("/proc", child, kind).read_text()


# What is there


def test_packages_and_commands_of_the_hosts_environment_are_there(shared_kernel: Kernel) -> None:
    assert printed(shared_kernel, "import pytest; print(pytest.__file__)") == f"{pytest.__file__}\n"
    assert "pytest" in printed(shared_kernel, "!pytest --version")


def test_mounted_folders_are_read_only_and_one_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("data")
    tmp_path.chmod(0o755)
    with started(make(mounts={str(tmp_path): "/data"}), with_kernel=False) as kernel:
        assert output_of(kernel, "cat", "/data/data") == "data"
        assert "Read-only" in kernel.run_program("echo > /data/data", {}, {}, timeout=30).text
    missing = make(mounts={"/no/such/folder": "/data"})
    with pytest.raises(InfrastructureError, match="/no/such/folder"), started(missing):
        pass


def test_pip_settings_are_there_and_certificates_with_a_network(tmp_path: Path) -> None:
    # Private files of one name.
    files = [tmp_path / folder / "private" for folder in ("ca", "pip")]
    for file, text in zip(files, ("certificates", "[global]\ntimeout = 77\n"), strict=True):
        file.parent.mkdir()
        file.touch(0o600)
        file.write_text(text)
    given = {"ca_bundle": files[0], "pip_config": files[1], "environment": {"PATH": "/usr/bin"}}
    for network, text in ((True, "certificates"), (False, "")):
        with started(make(SandboxSpec(network=network), **given), with_kernel=False) as kernel:
            assert output_of(kernel, "sh", "-c", 'test -z "$SSL_CERT_FILE" || cat "$SSL_CERT_FILE"') == text
            assert network or "timeout = 77" in output_of(kernel, "sh", "-c", 'cat "$PIP_CONFIG_FILE"')


# Limits where no cgroup enforces them

watched = pytest.mark.skipif(can_limit(), reason="a cgroup enforces the limits")
THREADS = "import threading\nfor _ in range(60): threading.Thread(target=time.sleep, args=(60,)).start()"


@watched
@pytest.mark.parametrize(
    ("limits", "code", "cause"),
    [
        ({"memory": "300m"}, "data = bytearray(b'x') * 400_000_000", "out of memory"),
        ({"pids": 60}, THREADS, "more than 60 processes and threads"),
    ],
)
def test_a_sandbox_above_a_limit_is_the_agents_end(limits: dict[str, Any], code: str, cause: str) -> None:
    with started(make(SandboxSpec.model_validate(limits)), with_kernel=False) as kernel:
        command = shlex.join(["python", "-c", f"import time\n{code}\ntime.sleep(60)"])
        result = kernel.run_program(command, {}, {}, timeout=120)
        assert result.outcome is Outcome.SANDBOX_LOST
        assert result.detail.endswith(cause)


@watched
def test_memory_above_our_default_is_not_the_agents_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "DEFAULT_MEMORY", 300_000_000)
    code = "import time\ndata = bytearray(b'x') * 400_000_000\ntime.sleep(60)"
    refused = pytest.raises(InfrastructureError, match=r"set `sandbox\.memory`")
    with started(make(), with_kernel=False) as kernel, refused:
        output_of(kernel, "python", "-c", code)


@watched
def test_memory_that_processes_share_does_not_count_twice() -> None:
    code = "import os, time\ndata = bytearray(b'x') * 200_000_000\nif not os.fork() or not os.fork():\n"
    code += "    time.sleep(3); os._exit(0)\ntime.sleep(2.5)\nprint(1)"
    with started(make(SandboxSpec.model_validate({"memory": "500m"})), with_kernel=False) as kernel:
        assert output_of(kernel, "python", "-c", code) == "1\n"


# The end


def test_bwrap_killed_from_outside_is_not_the_end_of_the_agent() -> None:
    others = children()
    with started(make(), with_kernel=False) as kernel:
        (bwrap,) = children() - others
        os.kill(int(bwrap), signal.SIGKILL)
        with pytest.raises(EngineError, match=r"outside the sandbox \(signal 9\)"):
            output_of(kernel, "sleep", "60")


# In place of the suite's test, with the cause.
def test_the_bridge_killed_from_inside_is_a_lost_sandbox() -> None:
    with started(make(), with_kernel=False) as kernel:
        result = kernel.run_program("kill -9 $PPID; sleep 60", {}, {}, timeout=60)
        assert result.outcome is Outcome.SANDBOX_LOST
        assert result.detail.endswith("the bridge was killed by signal 9")
        assert kernel.run_program("true", {}, {}, timeout=60).outcome is Outcome.SANDBOX_LOST


KILLED_ONCE = """
import os, signal
from pathlib import Path

class Agent:
    def run(self, trial):
        trial.execute("1")
        mark = Path("killed")
        if not mark.exists():
            mark.touch()
            for stat in Path("/proc").glob("[0-9]*/stat"):
                pid, _, rest = stat.read_text().partition(" (bwrap) ")
                if rest and int(rest.split()[1]) == os.getpid():
                    os.kill(int(pid), signal.SIGKILL)
            # Its children end a moment later.
            trial.execute("import time; time.sleep(5)")
        trial.execute("2")
        trial.submit(42)
"""


@pytest.mark.slow
def test_a_trial_whose_bwrap_is_killed_is_an_error_and_a_resumed_run_tries_it_again(tmp_path: Path) -> None:
    task = "id: t\nset: expert\nquery: q\nanswer: 42\n"
    files = {"agent.py": KILLED_ONCE, "tasks/t.task.yaml": task}
    (killed,) = results_of(tmp_path, files, "--super-sandbox=bubblewrap")
    assert (killed["solved"], killed["stop_reason"]) == (False, "error")
    assert "signal 9" in killed["error"]
    *_, again = results_of(tmp_path, {}, "--super-sandbox=bubblewrap", "--super-resume=latest")
    assert (again["solved"], again["error"]) == (True, None)


def test_kept_files_stay_and_can_be_entered() -> None:
    sandbox = make()
    with started(sandbox, with_kernel=False) as kernel:
        kernel.files.write("result.txt", b"kept\n")
        command = sandbox.keep()
    looking = ["bash", "-c", f"{command} -c 'cat result.txt; which python'"]
    shown = subprocess.run(looking, capture_output=True, text=True, check=True)
    assert shown.stdout == "kept\n/venv/bin/python\n"
    find_provider("bubblewrap").sweep()
    assert sandbox.folder.exists()
    shutil.rmtree(sandbox.folder)
    with pytest.raises(InfrastructureError, match="gone"):
        sandbox.keep()


def test_the_end_of_the_thread_that_started_it_is_not_its_end() -> None:
    kernel = Kernel(make())
    starter = threading.Thread(target=kernel.start, kwargs={"with_kernel": False})
    try:
        starter.start()
        starter.join()
        assert output_of(kernel, "echo", "1") == "1\n"
    finally:
        kernel.close()


@pytest.fixture(params=["while True: pass", "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)"])
def killed_host(request: pytest.FixtureRequest) -> Path:
    """The folder of a sandbox whose process was killed while a cell ran, once with its bridge stopped."""
    command = [sys.executable, "-c", HOST, request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        folder = Path(host.stdout.readline().strip())
        assert len(inhabitants(folder)) > 4
        host.send_signal(signal.SIGKILL)
    return folder


@pytest.mark.slow
def test_a_killed_host_leaves_no_process_and_a_folder_that_the_next_run_removes(killed_host: Path) -> None:
    assert until(lambda: inhabitants(killed_host) in ([], [str(killed_host)])), inhabitants(killed_host)
    with started(make()) as kernel:
        find_provider("bubblewrap").sweep()
        assert printed(kernel, "print('spared')") == "spared\n"
    assert inhabitants(killed_host) == []
