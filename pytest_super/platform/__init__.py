"""What the package needs from the host's operating system beyond POSIX. It imports only itself.

`linux` uses prctl and /proc. `portable` needs only `ps`; it is for macOS, where sandboxes are containers of
Docker Desktop. Both have the functions of `HostPlatform`, whose docstrings say what the portable side lacks.
The code in kernel/inside cannot use this package, because it runs alone in the sandbox.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Protocol

from pytest_super.platform import linux, portable

if TYPE_CHECKING:
    from collections.abc import Callable

# The environment variable that marks every process of a local sandbox or of a program on the host.
MARKER = "PYTEST_SUPER_SANDBOX"


class HostPlatform(Protocol):
    """The functions that differ between the two sides."""

    def host_id(self) -> str:
        """An id of this machine and its pid namespace: processes with the same id see the same pids.

        The portable id does not change at a reboot.
        """

    def start_time(self, pid: int) -> str | None:
        """When the process started, in an arbitrary unit; None when it is dead.

        It distinguishes a process from a later one with the same pid. The portable one is always "".
        """

    def processes_with(self, variable: str) -> set[int]:
        """The living processes, other than this one, started with `NAME=value` in their environment."""

    def children(self) -> set[int]:
        """The children of this process. Linux includes those that have ended and were not awaited."""

    def become_supervisor(self) -> None:
        """Become the parent of each descendant whose own parent ends; get SIGCONT when our parent ends.

        The portable one does nothing.
        """


_host: HostPlatform = linux if sys.platform == "linux" else portable


def host() -> HostPlatform:
    return _host


def use_portable() -> None:
    """Use the portable side in this process, even on Linux: for tests."""
    global _host
    _host = portable


def is_portable() -> bool:
    return _host is portable


def marked_processes(mark: str) -> set[int]:
    """The living processes that were started with this value of MARKER, whoever their parent is now."""
    return _host.processes_with(f"{MARKER}={mark}")


def when_parent_ends(action: Callable[[], None]) -> None:
    """Call `action` in a daemon thread when the parent of this process has ended."""
    import threading
    import time

    parent = os.getppid()

    def watch() -> None:
        # Polling, because only Linux can send a notification.
        while os.getppid() == parent:
            time.sleep(0.5)
        action()

    threading.Thread(target=watch, daemon=True, name="super-parent").start()
