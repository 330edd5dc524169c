"""`HostPlatform` for any Unix with `ps`, mainly macOS. The contracts are in `HostPlatform`."""

from __future__ import annotations

import os
import sys

# Options with which `ps` prints the environment after each command.
WITH_ENVIRONMENT = ["-axww", "-E"] if sys.platform == "darwin" else ["axeww"]


def host_id() -> str:
    import socket
    import uuid

    # With the hardware address, because many laptops are called `localhost`. Without a network card, the
    # address is random in each process; then a sweep takes no owner for dead.
    return f"{socket.gethostname()}/{uuid.getnode():x}"


def start_time(pid: int) -> str | None:
    # Not the start time of `ps`: on Linux it varies by a second, and a living process must not look dead.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    # A zombie still takes signals; only `ps` says that it has ended.
    return "" if any(found == pid for found, _ in processes()) else None


def processes_with(variable: str) -> set[int]:
    found = set()
    for line in ps(*WITH_ENVIRONMENT, "-o", "pid=,command="):
        pid, *words = line.split()
        if pid.isdigit() and variable in words:
            found.add(int(pid))
    return found - {os.getpid()}


def children() -> set[int]:
    return {pid for pid, parent in processes() if parent == os.getpid()}


def processes() -> list[tuple[int, int]]:
    found = []
    for line in ps("-ax", "-o", "pid=,ppid=,stat="):
        pid, parent, state = line.split()
        if not state.startswith("Z"):
            found.append((int(pid), int(parent)))
    return found


def become_supervisor() -> None:
    return


def ps(*arguments: str) -> list[str]:
    """The lines that `ps` prints, without the one about itself."""
    import subprocess

    command = ["ps", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
    return [line for line in lines if line.split() and line.split()[0] != str(process.pid)]
