"""Code inside changes nothing of the host, reads no keys of it, and is observed.

Nothing here harms a host that is not protected: kernel settings are opened and not written, and files that
should not appear on the host are empty and are removed.
"""

import ctypes
import json
import os
import secrets
import sys
from pathlib import Path

import pytest

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.support import SandboxFactory, printed, started
from pytest_super.kernel.http_requests import Reply
from pytest_super.kernel.providers.bwrap import KEYCTL
from pytest_super.tasks.sandbox_spec import SandboxSpec

# Where a host has keys and accounts. An image can have folders of the same names.
KEYS = (
    *("/etc/ssl/private", "/etc/pki/tls/private", "/etc/ssh", "/etc/letsencrypt", "/etc/docker"),
    *("/etc/kubernetes", "/etc/sudoers.d", "/etc/security", "/etc/NetworkManager", "/etc/wireguard", "/root"),
    *("/var/lib/docker", "/var/run/secrets", str(Path.home()), str(Path.home() / ".ssh")),
)
WRITABLE = """
import os
found = []
for folder, _, names in os.walk("/proc/sys"):
    for path in (os.path.join(folder, name) for name in names):
        try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError: continue
        found.append(path)
print(found)
"""
LISTED = """
import json, os
def seen(path):
    names = os.listdir(path)
    there = os.stat(path)
    return [there.st_dev, there.st_ino, names]
found = {}
for path in %r:
    try: found[path] = seen(path)
    except OSError: pass
print(json.dumps(found))
"""
WRITE = """
for path in %r:
    try: open(path, "x").close()
    except OSError: pass
"""
NEST = """
import ctypes, os
process = os.fork()
if process == 0: os._exit(ctypes.CDLL(None).unshare(%d) == 0)
print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""
# KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, without a new one.
ASKED = (KEYCTL, 0, -3, 0)
# Asked before any sandbox starts: from now on this process and its children have one, as after a login.
KEYRING = ctypes.CDLL(None).syscall(*ASKED)
NEW_USERS, NEW_USERS_AND_MOUNTS = 0x10000000, 0x10020000


def test_no_setting_of_the_hosts_kernel_can_be_opened_for_writing(isolated_kernel: Kernel) -> None:
    assert printed(isolated_kernel, WRITABLE) == "[]\n"


def test_no_folder_of_the_host_with_keys_can_be_listed(isolated_kernel: Kernel) -> None:
    seen = json.loads(printed(isolated_kernel, LISTED % (KEYS,)))
    # Above the sandbox's own folders there can be empty ones of the same name, and images have their own.
    of_host = [path for path, (*identity, _) in seen.items() if identity == identity_of(path)]
    assert of_host == []


def test_no_session_keyring_of_the_host_can_be_found(isolated_kernel: Kernel) -> None:
    inside = int(printed(isolated_kernel, f"import ctypes; print(ctypes.CDLL(None).syscall{ASKED})"))
    assert inside == -1 or inside != KEYRING


def identity_of(path: str) -> list[int]:
    try:
        there = os.stat(path)
    except OSError:
        return []
    return [there.st_dev, there.st_ino]


def test_nothing_is_written_outside_of_the_sandboxs_folders(isolated_kernel: Kernel, tmp_path: Path) -> None:
    name = f"super-{secrets.token_hex(8)}"
    folders = ("/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/tmp", "/var/tmp", "/dev/shm", "/run")
    ours = (Path.home(), Path.cwd(), tmp_path, Path(sys.prefix), Path(sys.base_prefix) / "lib")
    paths = [str(Path(folder, name)) for folder in (*folders, *ours)]
    printed(isolated_kernel, WRITE % (paths,))
    written = [path for path in paths if os.path.exists(path)]
    for path in written:
        os.unlink(path)
    assert written == []


@pytest.mark.parametrize("namespaces", [NEW_USERS, NEW_USERS_AND_MOUNTS])
def test_no_further_user_namespace_can_be_made(isolated_kernel: Kernel, namespaces: int) -> None:
    assert printed(isolated_kernel, NEST % namespaces) == "0\n"


# Which processes have run inside, and that code inside cannot change what is reported.

SCRIPT = "import sys, time; time.sleep(0.8); sys.exit(3)"


def test_process_of_a_script_is_observed_to_its_end(shared_kernel: Kernel) -> None:
    shared_kernel.files.write("observed.py", SCRIPT.encode())
    result = shared_kernel.execute("import subprocess\nsubprocess.run(['python3', 'observed.py'])")
    if result.processes is None:
        pytest.skip("processes are observed on Linux only")
    [process] = [one for one in result.processes if "observed.py" in one.files.values()]
    assert process.is_python
    assert process.seconds is not None
    assert process.seconds >= 0.8
    # None before Linux 6.15.
    assert process.status in (3 << 8, None)


def test_code_inside_cannot_read_or_write_the_memory_of_the_bridge(isolated_kernel: Kernel) -> None:
    code = "import os\ntry: open(f'/proc/{os.getppid()}/mem', 'rb+')\nexcept OSError as e: print(e.strerror)"
    assert printed(isolated_kernel, code) == "Permission denied\n"


def test_code_inside_cannot_write_to_the_host_in_place_of_the_bridge(isolated_kernel: Kernel) -> None:
    # Into each open end of the sandbox's first process: by its name, and by pidfd_getfd.
    write = """
import ctypes, os
def named(number): return os.open(f"/proc/1/fd/{number}", os.O_WRONLY)
def copied(number): return ctypes.CDLL(None).syscall(438, os.pidfd_open(1), number, 0)
for number in (0, 1):
    for way in (named, copied):
        try: os.write(way(number), bytes(100))
        except OSError: pass
"""
    results = [isolated_kernel.execute(code, timeout=30) for code in (write, "1")]
    assert [(result.outcome, result.dropped) for result in results] == [(Outcome.OK, {})] * 2


def test_code_inside_cannot_put_modules_into_the_bridge(sandbox_factory: SandboxFactory) -> None:
    names = "socketserver http select subprocess shutil tarfile"
    plant = f"""for name in {names}; do echo "open('imported', 'a').write(__name__)" > $name.py; done"""
    with started(sandbox_factory(SandboxSpec()), with_kernel=False) as kernel:
        assert kernel.run_program(plant, {}, {}, timeout=60).outcome is Outcome.OK
        assert kernel.serve(lambda _: Reply(status=200, body=b""))
        kernel.files.remove("select.py")
        assert "imported" not in [entry.name for entry in kernel.files.entries()]
