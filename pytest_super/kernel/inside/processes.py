"""The processes in a sandbox: the kernel's start, its death and the cause, and all our descendants.

Delivered into the sandbox. Imports little, because the kernel's start waits for this module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from signal import SIGKILL, SIGSTOP
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Of the kernel, with its command, its standard error and the folder; returns its process.
    Start = Callable[[list[str], int, str], int]

# A folder that contains this file is not removed, so that a person can look into it.
KEEP = ".keep"
# Positions among the fields of `stat_of`. Times are in ticks: two of the process itself, two of the processes
# that it waited for, and its start, counted from the machine's.
STATE, PARENT, TIMES, START = 0, 1, 11, 19
# Rounds of 5 ms; processes that remain belong to another user or hang in the kernel.
KILL_ROUNDS = 100
# A socket's path can have 107 bytes; ours end in `/kernel-12345-5`.
LONGEST_FOLDER = 80
# Sockets in our private folder, not ports: any process on the same loopback could connect to those.
CONNECTION = """{"transport": "ipc", "ip": "%s", "key": "%s", "signature_scheme": "hmac-sha256",
"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5, "kernel_name": ""}"""


def private_folder() -> str:
    """A new folder that only this user can enter, with a path short enough for sockets."""
    problem: OSError | None = None
    # /dev/shm is not on the disk, so snapshots of the sandbox's files do not contain our folder.
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


def import_from_standard_library() -> None:
    """From now on, import nothing else: code inside can write to the other folders that `sys.path` names."""
    library = os.path.dirname(os.__file__)
    sys.path[:] = [library, os.path.join(library, "lib-dynload")]


def remove(folders: list[str]) -> None:
    """Remove the folders, except those that a person wants to look into: they contain KEEP."""
    for folder in folders:
        if not os.path.exists(os.path.join(folder, KEEP)):
            remove_tree(folder)


def remove_tree(folder: str) -> None:
    """Remove the folder, including subfolders that code inside has made unwritable. Never raises."""
    import subprocess

    # Not by `shutil`, which before Python 3.13 recurses, and fails for folders nested 1,000 deep.
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        if os.path.exists(folder):
            try:
                subprocess.run([*command, "--", folder], stderr=subprocess.DEVNULL, check=False)
            except OSError:
                return


class KernelProcess:
    """One kernel process, the address of its sockets and the key that signs its messages."""

    def __init__(self, folder: str, number: int, launcher: str, start: Start | None = None) -> None:
        self.key = os.urandom(16).hex()
        self.address = f"{folder}/kernel-{number}"
        program, connection = folder + "/kernel.py", self.address + ".json"
        for path, text in ((program, launcher), (connection, CONNECTION % (self.address, self.key))):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        self.stderr = read_end
        self._stderr_end = b""
        # The history's database is a file in HOME, shared by all kernels and slow. What IPython pages, as for
        # `len?`, would be a field of the cell's reply, and not an output in its place among the others.
        options = ["-f", connection, "--HistoryManager.enabled=False", "--InteractiveShell.display_page=True"]
        self.pid = (start or spawn_kernel)([sys.executable, program, *options], write_end, folder)
        prefer_as_victim(self.pid)
        os.close(write_end)
        # The count is of the whole group: a kill before this start does not explain this kernel's death.
        self.oom_kills = oom_kills()

    def address_of(self, port: int) -> str:
        return f"ipc://{self.address}-{port}"

    def signal(self, number: int, group: bool = False) -> None:
        send_signal(-self.pid if group else self.pid, number)

    def directory(self, otherwise: str) -> str:
        """The kernel's current directory, or `otherwise` if the kernel is dead or the directory removed."""
        try:
            found = os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            return otherwise
        return found if os.path.isdir(found) else otherwise

    def read_stderr(self) -> None:
        """Read the process's standard error, so that it never blocks on a full pipe; keep the end."""
        try:
            while more := os.read(self.stderr, 65536):
                self._stderr_end = (self._stderr_end + more)[-4000:]
        except OSError:
            return

    def cause_of_death(self, status: int) -> str:
        """Why the process ended: from its wait status, and the last line that it wrote."""
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number == SIGKILL and oom_kills() > self.oom_kills:
            return "out of memory"
        cause = f"killed by signal {number}" if number else f"exit code {os.WEXITSTATUS(status)}"
        # The pipe can still contain the process's last words.
        self.read_stderr()
        words = self._stderr_end.decode("utf-8", "replace").strip()
        return f"{cause}: {words.splitlines()[-1]}" if words else cause


def spawn_kernel(command: list[str], stderr: int, folder: str) -> int:
    return spawn(command, {**os.environ, **kernel_variables(os.getpid(), folder)}, stderr)


def spawn(command: list[str], environment: dict[str, str], output: int, **options: Any) -> int:
    """Start `command` in its own session, with empty input and `output` as both outputs."""
    actions: list[Any] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    # Not by `subprocess`, whose import would delay the kernel's start.
    return os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True, **options)


def kernel_variables(bridge: int, folder: str) -> dict[str, str]:
    # ipykernel ends by itself when the process JPY_PARENT_PID, the bridge, has ended.
    return {"JPY_PARENT_PID": str(bridge), "IPYTHONDIR": folder + "/ipython"}


def prefer_as_victim(pid: int) -> None:
    """Make the system kill this process and its descendants, not us, when memory runs out."""
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        return


def oom_kills() -> int:
    """How many processes of our memory group were killed so far for lack of memory; 0 if not counted."""
    for path in memory_files():
        try:
            with open(path) as file:
                fields = dict(line.split() for line in file)
            return int(fields["oom_kill"])
        except (OSError, ValueError, KeyError):
            continue
    return 0


def memory_files() -> list[str]:
    """Files that can contain the count: control groups version 1 and 2, seen from inside and from outside."""
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


def descendants(root: int, known: dict[int, int] | None = None) -> set[int]:
    """All living processes that descend from `root`, in any session. `known` is what `parents` returned."""
    children: dict[int, list[int]] = {}
    for pid, parent in (parents() if known is None else known).items():
        children.setdefault(parent, []).append(pid)
    found, open_ends = set(), [root]
    while open_ends:
        new = children.get(open_ends.pop(), [])
        found.update(new)
        open_ends.extend(new)
    return found


def parents() -> dict[int, int]:
    """The parent of every living process, by /proc or, where there is none (on macOS), by `ps`."""
    try:
        return {pid: int(stat[PARENT]) for pid, stat in statistics(pids()).items() if is_alive(stat)}
    except FileNotFoundError:
        with os.popen("ps -ax -o pid=,ppid=,stat=") as output:
            rows = [line.split() for line in output]
        return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}


def pids() -> set[int]:
    """All processes. Raises FileNotFoundError where there is no /proc."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def statistics(pids: Iterable[int]) -> dict[int, list[bytes]]:
    """The fields of `stat_of` for each of the processes that exists; those of zombies too."""
    stats = {pid: stat_of(pid) for pid in pids}
    return {pid: stat for pid, stat in stats.items() if stat is not None}


def is_alive(stat: list[bytes]) -> bool:
    return stat[STATE] not in (b"Z", b"X")


def ticks_of(stat: list[bytes]) -> tuple[int, int]:
    """The processor time of a process in ticks: its own, and that of the processes that it waited for."""
    user, system, children_user, children_system = map(int, stat[TIMES : TIMES + 4])
    return user + system, children_user + children_system


def stat_of(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat after the name, or None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            return file.read(4096).rpartition(b")")[2].split() or None
    except OSError:
        return None


def kill_all(find: Callable[[], set[int]]) -> None:
    """Kill the processes that `find` returns, until it returns none or after KILL_ROUNDS.

    All are stopped first: killing one at a time leaves a fork bomb room to fork more.
    """
    import time

    stopped: set[int] = set()
    while new := find() - stopped:
        for pid in new:
            send_signal(pid, SIGSTOP)
        stopped |= new
    for _ in range(KILL_ROUNDS):
        living = find()
        if not living:
            return
        for pid in living:
            send_signal(pid, SIGKILL)
        time.sleep(0.005)


def kill_descendants() -> dict[int, int]:
    """Kill all our descendants. Returns the wait status of each child."""
    kill_all(lambda: descendants(os.getpid()))
    return reap()


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process, or to the process group `-pid`."""
    try:
        os.kill(pid, number)
    except OSError:
        return


def reap() -> dict[int, int]:
    """The wait status of each child that has ended, also of adopted ones: zombies count for a pids limit."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except OSError:
            return ended
        if pid == 0:
            return ended
        # A child that asks to be traced is reported when it stops, too.
        if not os.WIFSTOPPED(status):
            ended[pid] = status
