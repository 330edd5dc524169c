"""The bridge as a process on this machine, with a pair of sockets as its stream."""

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from pytest_super.kernel.inside.processes import descendants, kill_all
from pytest_super.platform.forks.fork import Fork

# The bridge is killed if it takes longer than this to kill its descendants and end.
CLOSE_SECONDS = 5.0
LONGEST_WORDS = 4096


class SocketStream:
    """One end of a socket pair. Unlike a pipe, closing it ends a blocked read."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def read(self, size: int) -> bytes:
        return self._end.recv(size)

    def write(self, data: bytes) -> None:
        self._end.sendall(data)

    def close(self) -> None:
        with suppress(OSError):
            # Not a close, which would not end a read that is blocked in another thread.
            self._end.shutdown(socket.SHUT_RDWR)


class BridgeProcess:
    """A command that runs the bridge in a session of its own. The constructor starts it; raises OSError."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        pass_fds: Sequence[int] = (),
        forks: Path | None = None,
    ) -> None:
        """If `forks` is the socket of a process that forks, `command` has a fork's code and arguments."""
        self._is_closed = False
        self._end, theirs = socket.socketpair()
        self.stream = SocketStream(self._end)
        # Not a file in the sandbox's folder, which can be removed before the output is read.
        # Nor a pipe: nobody reads the log before the end, and a full pipe would block the bridge.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        # Our copy of their end is closed, or the stream would not end with the bridge.
        with theirs, ExitStack() as if_it_fails:
            for file in (self._end, self._log):
                if_it_fails.callback(file.close)
            stdin, stdout, stderr = streams = (theirs.fileno(), theirs.fileno(), self._log.fileno())
            self._process: Fork | subprocess.Popen[bytes] = (
                Fork(forks, command, streams=streams, folder=cwd or ".", environment=env)
                if forks
                else subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=env,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                    pass_fds=pass_fds,
                )
            )
            if_it_fails.pop_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """Kill the command itself."""
        self._process.kill()

    @property
    def signal(self) -> int | None:
        """The signal that ended the command itself, not a process that it waited for. None after `close`."""
        code = self._process.poll()
        return -code if code is not None and code < 0 and not self._is_closed else None

    def cause_of_death(self) -> str:
        """How the process ended, for a person to read."""
        try:
            code = self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            return "its stream was closed from inside"
        # A program that runs another one reports the other's death by a signal as 128 plus its number.
        number = -code if code < 0 else code - 128
        if number > 0:
            return f"killed by signal {number}"
        return f"ended with exit code {code}{self._last_words()}"

    def _last_words(self) -> str:
        if self._log.closed:
            return ""
        # Only the end: code inside can have made the log as large as the disk.
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - LONGEST_WORDS))
        *lines, _ = self._log.read().decode("utf-8", "replace").split("\n")
        # A Python that cannot start says why first, and then where it was.
        words = [line for line in lines if line.strip()]
        fatal = [line for line in words if line.startswith("Fatal Python error")]
        return "".join(f": {line}" for line in (fatal or words)[-1:])

    def close(self) -> None:
        """End the stream, which ends the bridge, or kill its processes. Idempotent; never raises."""
        self._is_closed = True
        self.stream.close()
        # Code inside can have stopped the bridge or its supervisor.
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            kill_all(lambda: descendants(self._process.pid))
            self._process.kill()
            self._process.wait()
        self._end.close()
        self._log.close()
