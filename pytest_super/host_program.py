"""A program on the host: a process with all that it starts, its output bounded, ended when we are."""

from __future__ import annotations

import codecs
import os
import secrets
import select
import signal
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.local import MARKER, marked_processes
from pytest_super.kernel.output import CellOutput
from pytest_super.kernel.processes import kill_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

# How long a program that is told to end has for it.
GRACE_SECONDS = 2.0
# What has left our sight may hold the output open; its end is not waited for any longer.
DRAIN_SECONDS = 2.0
LOOK_MILLISECONDS = 200
PIECE = 65536
# Its input ends when this process does, however that ends.
GUARD = """
read group && { read _; kill -s KILL -- "-$group"; }
for file in $(grep -ls "$2" /proc/[0-9]*/environ); do
    pid=${file#/proc/}
    kill -s KILL "${pid%/environ}"
done
rm -rf -- "$1"
"""


class HostProgram:
    """Runs while it is entered: a line for the host's `sh`, in a session of its own, with nothing to read.

    Leaving it ends the program, whatever it has started, and what that has put into sessions of their own.
    """

    def __init__(
        self, command: str, folder: str, environment: Mapping[str, str], on_end: Callable[[], None]
    ) -> None:
        """`on_end` is called in a thread when the program has ended.

        `folder`, where it runs, is removed should this process be killed.
        """
        self.output = CellOutput()
        self._mark = secrets.token_hex(16)
        self._command = command
        self._folder = folder
        self._environment = {**environment, MARKER: self._mark}
        self._on_end = on_end
        self._guard: Guard | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._ended = threading.Event()
        self._is_drained = False
        self._code: int | None = None

    def __enter__(self) -> HostProgram:
        """Raises InfrastructureError when no process can be started."""
        try:
            self._start()
        except OSError as error:
            self._kill()
            raise InfrastructureError(f"the program cannot be started: {error}") from error
        except BaseException:
            # An interrupt: nobody would come to __exit__.
            self._kill()
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.end()

    @property
    def is_running(self) -> bool:
        return not self._ended.is_set()

    def end(self) -> int:
        """End what still runs of it: asked first, then killed. Its exit code, -N for the signal N."""
        if self._code is None:
            try:
                if self.is_running:
                    self._signal(signal.SIGTERM)
                    self._ended.wait(GRACE_SECONDS)
            finally:
                self._code = self._kill()
        return self._code

    def _start(self) -> None:
        self._guard = Guard(self._folder, self._mark)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", self._command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._guard.watch(self._process.pid)
        self._reader.start()
        threading.Thread(target=self._await_end, args=(self._process.pid,), daemon=True).start()

    def _await_end(self, pid: int) -> None:
        # Not reaped here, so that its number still means its group when the rest of that is killed.
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self._ended.set()
        self._on_end()

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with suppress(OSError):
                os.killpg(self._process.pid, number)

    def _kill(self) -> int:
        self._signal(signal.SIGKILL)
        kill_all(lambda: set(marked_processes(self._mark)))
        code = 0 if self._process is None else self._process.wait()
        if self._guard is not None:
            self._guard.close()
        self._drain()
        return code

    def _drain(self) -> None:
        if self._reader.ident is not None:
            self._reader.join(DRAIN_SECONDS)
            self._is_drained = True
            self._reader.join()
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # Not `select`, which knows no descriptors beyond 1023.
        readable = select.poll()
        readable.register(descriptor, select.POLLIN)
        while not self._is_drained:
            if readable.poll(LOOK_MILLISECONDS):
                data = os.read(descriptor, PIECE)
                self.output.add("stream", {"name": "stdout", "text": decoder.decode(data, final=not data)})
                if not data:
                    return


class Guard:
    """A process that outlives us by a moment, to kill the program and remove its folder in our place."""

    def __init__(self, folder: str, mark: str) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "sh", folder, mark],
            env={"PATH": os.defpath},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % group)
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
