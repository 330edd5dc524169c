"""The host's operating system by `ps`, for any Unix, mainly macOS."""

import os
import sys

# Options with which `ps` prints the environment after each command.
WITH_ENVIRONMENT = ["-axww", "-E"] if sys.platform == "darwin" else ["axeww"]


class Portable:
    """What differs between Linux and other systems; the docstrings say what this side cannot do."""

    def host_id(self) -> str:
        """An id of this machine and its pid namespace: processes with the same id see the same pids.

        The portable id does not change at a reboot.
        """
        import socket
        import uuid

        # With the hardware address, because many laptops are called `localhost`. Without a network card, the
        # address is random in each process; then a sweep takes no owner for dead.
        return f"{socket.gethostname()}/{uuid.getnode():x}"

    def start_time(self, pid: int) -> str | None:
        """When the process started, in an arbitrary unit; None when it is dead.

        It distinguishes a process from a later one with the same pid. The portable one is always "".
        """
        # Not the start time of `ps`: on Linux it varies by a second, and a living process must not look dead.
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            return ""
        # A zombie still takes signals; only `ps` says that it has ended.
        return "" if any(found == pid for found, _ in processes()) else None

    def processes_with(self, variable: str) -> set[int]:
        """The living processes, other than this one, started with `NAME=value` in their environment."""
        found = set()
        for line in ps(*WITH_ENVIRONMENT, "-o", "pid=,command="):
            pid, *words = line.split()
            if pid.isdigit() and variable in words:
                found.add(int(pid))
        return found - {os.getpid()}

    def children(self) -> set[int]:
        """The children of this process. Linux includes those that have ended and were not awaited."""
        return {pid for pid, parent in processes() if parent == os.getpid()}

    def become_supervisor(self) -> None:
        """Become the parent of each descendant whose own parent ends; get SIGCONT when our parent ends.

        The portable one does nothing.
        """


def processes() -> list[tuple[int, int]]:
    found = []
    for line in ps("-ax", "-o", "pid=,ppid=,stat="):
        pid, parent, state = line.split()
        if not state.startswith("Z"):
            found.append((int(pid), int(parent)))
    return found


def ps(*arguments: str) -> list[str]:
    """The lines that `ps` prints, without the one about itself."""
    import subprocess

    command = ["ps", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    return [line for line in lines if line.split() and line.split()[0] != str(process.pid)]
