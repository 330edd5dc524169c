"""Tries to act on the host from inside a bubblewrap sandbox. Prints what each attack has gained, as JSON.

A process of its own, so that it can be another user's. Nothing here harms a host that is not protected.
"""

import ctypes
import json
import os
import platform
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.conformance.isolation import (
    KEYS,
    LISTED,
    NEST,
    NEW_USERS_AND_MOUNTS,
    WRITABLE,
    WRITE,
    identity_of,
)
from pytest_super.kernel.providers.bubblewrap import BubblewrapSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

TOKEN = secrets.token_hex(16)
KEY = f"super-{TOKEN}".encode()
# The numbers of the system calls add_key and keyctl.
KEY_CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
SESSION_KEYRING = -3

TRIED = """
import ctypes, glob, os, socket, stat
def tried(what):
    try: return what()
    except OSError: return None
"""
READ = "def content(path, size=64):\n    with open(path, 'rb') as file: return file.read(size)\n"
ENVIRONMENTS = """
token = (%r + %r).encode()
def is_told(path): return token in (tried(lambda: content(path, -1)) or b"")
print([path for path in glob.glob("/proc/[0-9]*/environ") if is_told(path)])
"""
DEVICES = """
paths = ["/dev/mem", "/dev/kmsg", "/dev/port", "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/loop0"]
print([path for path in paths if tried(lambda: os.open(path, os.O_RDONLY))])
disk = stat.S_IFBLK | 0o600, os.makedev(8, 0)
print([path for path in ["disk"] if tried(lambda: os.mknod(path, *disk) or True)])
"""
FACTS = """
paths = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/sys/firmware"]
def told(path): return os.listdir(path) if os.path.isdir(path) else content(path)
print([path for path in paths if tried(lambda: told(path))])
"""
SYSRQ = "print([path for path in ['/proc/sysrq-trigger'] if tried(lambda: os.open(path, os.O_WRONLY))])"
SIGNAL = "print([pid for pid in [%d] if tried(lambda: os.kill(pid, 0) or True)])"
OTHER = "print([path for path in [%r] if tried(lambda: content(path))])"
CONNECT = """
def connected(name):
    with socket.socket(socket.AF_UNIX) as end: end.connect(name)
    return True
print([name for name in %r if tried(lambda: connected(name))])
"""
KEYRING = "print([key for key in [ctypes.CDLL(None).syscall(%d, 10, %d, b'user', %r, 0)] if key > 0])"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        # Linux shows only the variables that a process was started with.
        attacked = subprocess.Popen(["sleep", "600"], env={"PATH": os.defpath, "SUPER_ATTACKED": TOKEN})
        # Before the sandboxes start: it can put a new keyring in place, which only later processes share.
        ctypes.CDLL(None).syscall(KEY_CALLS[0], b"user", KEY, b"secret", 6, SESSION_KEYRING)
        sandboxes = [BubblewrapSandbox(SandboxSpec(), SandboxSettings()) for _ in range(2)]
        kernels = [Kernel(one) for one in sandboxes]
        try:
            for kernel in kernels:
                kernel.start()
            kernels[1].files.write("secret.txt", TOKEN.encode())
            attack = Attacks(kernels[0], Path(folder), sandboxes[1].folder, attacked.pid)
            gained = {name: run(attack) for name, run in ATTACKS.items()}
            gained["isolated"] = str(sandboxes[0].capabilities.isolation)
        finally:
            attacked.kill()
            for kernel, sandbox in zip(kernels, sandboxes, strict=True):
                kernel.close()
                sandbox.close()
    print(json.dumps(gained))


class Attacks:
    """Each returns what it has gained, "" for nothing."""

    def __init__(self, kernel: Kernel, folder: Path, other: Path, process: int) -> None:
        self.kernel, self.folder, self.other, self.process = kernel, folder, other, process
        self.cell(TRIED + READ)

    def printed(self, code: str) -> str:
        """What a cell prints. One that fails has not tried its attack."""
        result = self.kernel.execute(code, timeout=60)
        if result.outcome != "ok":
            raise RuntimeError(f"{result.outcome}: {result.detail}\n{code}")
        return result.text

    def cell(self, code: str) -> str:
        """The same without empty lists."""
        return self.printed(code).replace("[]", "").strip()

    def keys(self) -> str:
        seen = json.loads(self.printed(LISTED % (KEYS,)))
        return " ".join(path for path, (*identity, _) in seen.items() if identity == identity_of(path))

    def writes(self) -> str:
        folders = ("/", "/etc", "/usr", "/usr/bin", "/tmp", "/var/tmp", "/dev/shm", "/run", self.folder)
        paths = [str(Path(one, f"super-{TOKEN}")) for one in folders]
        self.cell(WRITE % (paths,))
        written = [path for path in paths if os.path.exists(path)]
        for path in written:
            os.unlink(path)
        return " ".join(written)

    def followed_link(self) -> str:
        (self.folder / "marker").write_text(TOKEN)
        self.cell(f"os.symlink({str(self.folder / 'marker')!r}, 'out.txt')\nos.symlink('/', 'host')")
        found = b""
        for path in ("out.txt", f"host{self.folder}/marker"):
            with suppress(OSError):
                found += self.kernel.files.read(path)
        return "its content" if TOKEN.encode() in found else ""

    def sockets(self) -> str:
        names = [f"\0super-{TOKEN}", str(self.folder / "socket")]
        with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named:
            for end, name in zip((abstract, named), names, strict=True):
                end.bind(name)
                end.listen()
            return self.cell(CONNECT % (names,))


ATTACKS: dict[str, Callable[[Attacks], str]] = {
    "open a setting of the kernel for writing": lambda attack: attack.cell(WRITABLE),
    "list a folder with keys": Attacks.keys,
    "write outside of its folders": Attacks.writes,
    "make a user namespace with mounts": lambda attack: attack.cell(NEST % NEW_USERS_AND_MOUNTS).strip("0"),
    "signal a process of the host": lambda attack: attack.cell(SIGNAL % attack.process),
    "read the variables of a process of the host": lambda attack: attack.cell(
        ENVIRONMENTS % (TOKEN[:16], TOKEN[16:])
    ),
    "read the folder of another sandbox": lambda attack: attack.cell(
        OTHER % str(attack.other / "work/secret.txt")
    ),
    "open a device of the host": lambda attack: attack.cell(DEVICES),
    "read what the kernel tells root": lambda attack: attack.cell(FACTS),
    "trigger a system request": lambda attack: attack.cell(SYSRQ),
    "have the host follow a link": Attacks.followed_link,
    "connect to a socket of the host": Attacks.sockets,
    "find a key in the session's keyring": lambda attack: attack.cell(
        KEYRING % (KEY_CALLS[1], SESSION_KEYRING, KEY)
    ),
}

if __name__ == "__main__":
    main()
