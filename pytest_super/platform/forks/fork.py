"""A fork of a server as the process that asked for it sees it."""

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


class Fork:
    """Runs code as `python -c CODE ARGUMENT …` does, with the part of Popen's interface that we use."""

    def __init__(
        self,
        server: Path,
        command: Sequence[str],
        *,
        streams: Sequence[int],
        folder: str,
        environment: Mapping[str, str],
    ) -> None:
        """`command` is code and arguments. The fork gets SIGCONT when this process ends. Raises OSError."""
        code, *arguments = command
        given = {
            "code": code,
            "arguments": arguments,
            "folder": folder,
            "environment": dict(environment),
            "at_end": signal.SIGCONT,
        }
        self._code: int | None = None
        self._waiting = threading.Lock()
        self._answer = b""
        self._connection = socket.socket(socket.AF_UNIX)
        try:
            self._connection.connect(str(server))
            # First the streams: they come with the first bytes.
            socket.send_fds(self._connection, [b"0"], streams)
            self._connection.sendall(json.dumps(given).encode() + b"\n")
            if not (line := self._read_line()):
                raise ConnectionError("the process that forks has ended")
            self.pid = int(line)
        except OSError:
            self._connection.close()
            raise

    def _read_line(self) -> bytes:
        """Empty at the end. Raises OSError."""
        while b"\n" not in self._answer:
            if not (more := self._connection.recv(64)):
                return b""
            self._answer += more
        line, _, self._answer = self._answer.partition(b"\n")
        return line

    def poll(self) -> int | None:
        """The exit code if the process has ended; of a signal its negative number."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Raises TimeoutExpired."""
        with self._waiting:
            if self._code is None:
                self._connection.settimeout(timeout)
                try:
                    status = self._read_line()
                except (TimeoutError, BlockingIOError):
                    raise subprocess.TimeoutExpired("fork", timeout or 0) from None
                self._connection.close()
                # Without a status the server was killed.
                code = int(status or 128 + signal.SIGKILL)
                self._code = code if code < 128 else 128 - code
            return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
