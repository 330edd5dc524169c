"""What the package needs from the host's operating system beyond POSIX. It imports only itself.

`linux` uses prctl and /proc. `portable` needs only `ps`; it is for macOS, where sandboxes are containers of
Docker Desktop. The docstrings of `Portable` say what that side lacks.
The code in kernel/inside cannot use this package, because it runs alone in the sandbox.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from pytest_super.platform.linux import Linux
from pytest_super.platform.portable import Portable

# The environment variable that marks every process of a local sandbox or of a program on the host.
MARKER = "PYTEST_SUPER_SANDBOX"

_host: Portable = Linux() if sys.platform == "linux" else Portable()


def host() -> Portable:
    return _host


def use_portable() -> None:
    """Use the portable side in this process, even on Linux: for tests."""
    global _host
    _host = Portable()


def is_portable() -> bool:
    return type(_host) is Portable


def marked_processes(mark: str) -> set[int]:
    """The living processes that were started with this value of MARKER, whoever their parent is now."""
    return _host.processes_with(f"{MARKER}={mark}")


def obey_interrupts() -> None:
    """Let SIGINT interrupt this process and those that it starts, also in a shell's background job."""
    # Python allows only the main thread to set handlers.
    with suppress(ValueError):
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)


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
