"""The host's operating system by prctl and /proc."""

import os
import signal

from pytest_super.platform.portable import Portable

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Linux(Portable):
    """The contracts are in `Portable`."""

    def host_id(self) -> str:
        try:
            with open("/proc/sys/kernel/random/boot_id") as file:
                boot = file.read().strip()
            return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
        except OSError:
            # Some container runtimes do not have these files.
            return super().host_id()

    def start_time(self, pid: int) -> str | None:
        try:
            with open(f"/proc/{pid}/stat", errors="replace") as file:
                # The command's name, in parentheses, can contain anything.
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return None
        # Fields 3 and 22 of proc(5): state and `starttime`. Z and X: it has ended, but nobody has awaited it.
        return None if fields[0] in "ZX" else fields[19]

    def processes_with(self, variable: str) -> set[int]:
        needle = variable.encode()
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return {pid for pid in pids if pid != os.getpid() and needle in environment(pid)}

    def children(self) -> set[int]:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                return {int(word) for word in file.read().split()}
        except OSError:
            return set()

    def become_supervisor(self) -> None:
        import ctypes

        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)


def environment(pid: int) -> list[bytes]:
    """The variables with which the process was started; none if it belongs to another user."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
