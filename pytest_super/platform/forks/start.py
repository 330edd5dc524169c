"""Starts a server of forks."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SERVER = Path(__file__).with_name("server.py")


def can_fork() -> bool:
    """Whether the system tells the end of a process by a descriptor, as Linux 5.3 and later do."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.close(os.pidfd_open(os.getpid()))
            return True
    return False


class ForkServer:
    """A process of its own. The constructor returns before it is ready."""

    def __init__(
        self,
        preparation: str,
        *,
        folder: Path,
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
        idle_seconds: float = 0.0,
    ) -> None:
        """`preparation` imports what forks need; the process removes `folder` at its end. Raises OSError."""
        self.socket = folder / "socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.socket))
            listener.listen(1024)
            nothing = subprocess.DEVNULL if idle_seconds else None
            self._process = subprocess.Popen(
                [python, str(SERVER), str(listener.fileno()), str(idle_seconds), preparation],
                stdin=nothing or subprocess.PIPE,
                # Whoever reads our output must not wait for the end of a process that ends later.
                stdout=nothing,
                stderr=nothing,
                pass_fds=[listener.fileno()],
                env=environment,
                start_new_session=bool(idle_seconds),
            )
        threading.Thread(target=self._process.wait, daemon=True).start()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
