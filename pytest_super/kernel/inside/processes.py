"""The processes in a sandbox: the kernel's start, death and its causes, and everything that descends from us.

Delivered into the sandbox. Imports little, because the kernel's start waits for it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SIGKILL, SIGCONT, SIGSTOP = 9, 18, 19
# A folder of a sandbox in which this lies is kept for a person to look into.
KEEP = ".keep"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# A socket's path may have 107 bytes; ours end in `/kernel-12345-5`.
LONGEST_FOLDER = 80
CONNECTION = """{"transport": "ipc", "ip": "%s", "key": "%s", "signature_scheme": "hmac-sha256",
"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5, "kernel_name": ""}"""


def private_folder() -> str:
    """A new folder that only this user can enter, with a path that is short enough for sockets."""
    problem: OSError | None = None
    # In memory first: what is saved of a sandbox's files holds nothing of ours.
    for base in (os.environ.get("TMPDIR", ""), "/dev/shm", "/tmp", "/var/tmp", os.path.expanduser("~")):
        folder = os.path.join(base, ".super-" + os.urandom(6).hex())
        if not os.path.isabs(base) or len(os.fsencode(folder)) > LONGEST_FOLDER:
            continue
        try:
            os.mkdir(folder, 0o700)
            return folder
        except OSError as error:
            problem = error
    sys.exit(f"no folder for the kernel's sockets: {problem}")


def write_text(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


class KernelProcess:
    """One life of the kernel: its process, the address of its sockets, the key that signs its messages."""

    def __init__(self, folder: str, number: int, launcher: str) -> None:
        self.key = os.urandom(16).hex()
        self.address = f"{folder}/kernel-{number}"
        program, connection = folder + "/kernel.py", self.address + ".json"
        write_text(program, launcher)
        write_text(connection, CONNECTION % (self.address, self.key))
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        self.stderr = read_end
        self._words = b""
        # The history's database would be a file in HOME, shared and slow.
        options = ["-f", connection, "--HistoryManager.enabled=False"]
        self.pid = spawn([sys.executable, program, *options], write_end, folder)
        os.close(write_end)
        self.oom_kills = oom_kills()

    def address_of(self, port: int) -> str:
        return f"ipc://{self.address}-{port}"

    def signal(self, number: int, group: bool = False) -> None:
        try:
            (os.killpg if group else os.kill)(self.pid, number)
        except OSError:
            return

    def directory(self, otherwise: str) -> str:
        """Where the kernel is now, or `otherwise` when it is nowhere."""
        try:
            found = os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            return otherwise
        return found if os.path.isdir(found) else otherwise

    def listen(self) -> None:
        """Take what the process wrote to its own standard error, lest it wait for us; keep the end."""
        try:
            while more := os.read(self.stderr, 65536):
                self._words = (self._words + more)[-4000:]
        except OSError:
            return

    def death(self, status: int) -> dict[str, Any]:
        """How it died, of its wait status."""
        self.listen()
        killed = os.WIFSIGNALED(status)
        return {
            "code": None if killed else os.WEXITSTATUS(status),
            "signal": os.WTERMSIG(status) if killed else None,
            "out_of_memory": killed and os.WTERMSIG(status) == SIGKILL and oom_kills() > self.oom_kills,
            "stderr": self._words.decode("utf-8", "replace"),
        }


def spawn(command: list[str], stderr: int, folder: str) -> int:
    """Start `command` in a session of its own, with nothing to read and `stderr` as both outputs."""
    environment = dict(os.environ, JPY_PARENT_PID=str(os.getpid()), IPYTHONDIR=folder + "/ipython")
    actions: list[Any] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, stderr, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
    prefer_as_victim(pid)
    return pid


def prefer_as_victim(pid: int) -> None:
    """Let the system end this process and its descendants rather than us when memory runs out."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        return


def oom_kills() -> int:
    """How many processes of our memory group were killed for want of memory so far; 0 where nobody counts."""
    for path in memory_files():
        try:
            with open(path) as file:
                fields = dict(line.split() for line in file)
            return int(fields["oom_kill"])
        except (OSError, ValueError, KeyError):
            continue
    return 0


def memory_files() -> list[str]:
    """Where the count may stand: control groups version 1 and 2, seen from inside and from outside."""
    try:
        with open("/proc/self/cgroup") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except (OSError, ValueError):
        return []
    one = "/sys/fs/cgroup/memory{}/memory.oom_control"
    two = "/sys/fs/cgroup{}/memory.events"
    paths = [
        (one if "memory" in group[1] else two).format(group[2])
        for group in groups
        if group[1] in ("memory", "")
    ]
    return [*paths, two.format(""), one.format("")]


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that we find it when we kill all."""
    control_process(PR_SET_CHILD_SUBREAPER, 1)


def go_on_when_parent_ends() -> None:
    """Let the end of our parent wake us when code inside has stopped us: then we see it, and end too."""
    control_process(PR_SET_PDEATHSIG, SIGCONT)


def control_process(option: int, value: int) -> None:
    import ctypes

    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        return


def descendants(root: int) -> set[int]:
    """Every living process that descends from `root`, whatever its session."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = parent_of(int(name))
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found, open_ends = set(), [root]
    while open_ends:
        new = children.get(open_ends.pop(), [])
        found.update(new)
        open_ends.extend(new)
    return found


def parent_of(pid: int) -> int | None:
    """The parent's number, or None for what is dead already."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else int(parent)


def kill_all(find: Callable[[], set[int]], patience: int = 100) -> None:
    """Kill the processes that `find` finds; again while there are any.

    All are stopped first: killing one at a time makes room for what a fork bomb forks meanwhile.
    """
    import time

    stopped: set[int] = set()
    while new := find() - stopped:
        for pid in new:
            send_signal(pid, SIGSTOP)
        stopped |= new
    for _ in range(patience):
        living = find()
        if not living:
            return
        for pid in living:
            send_signal(pid, SIGKILL)
        time.sleep(0.005)


def kill_descendants() -> dict[int, int]:
    """Kill all that descends from us; the wait status of each child."""
    kill_all(lambda: descendants(os.getpid()))
    return reap()


def send_signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def reap() -> dict[int, int]:
    """The wait status of each child that has ended; of adopted ones too, lest zombies fill a pids limit."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except OSError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
