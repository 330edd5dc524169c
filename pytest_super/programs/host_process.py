"""A program on the host and all processes that it starts. Its output is bounded, and it ends when we end."""

from __future__ import annotations

import codecs
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.inside.processes import descendants, kill_all
from pytest_super.kernel.output import CellOutput
from pytest_super.platform import MARKER, is_portable, marked_processes
from pytest_super.programs.supervisor import ASK, KILL, KILL_SECONDS, STARTED

# The time that a program has to end after SIGTERM.
GRACE_SECONDS = 2.0
# The longest wait for the end of the output: a process that we did not find can keep it open.
DRAIN_SECONDS = 2.0
# Interval at which the reader checks whether that wait is over.
CHECK_MILLISECONDS = 200
PIECE = 65536
# Few imports, because it starts with every program. The environment is the program's: PYTHONPATH is not ours.
SUPERVISE = """
import sys
sys.path.append({folder!r})
from pytest_super import platform
if {portable}:
    platform.use_portable()
from pytest_super.programs.supervisor import main
main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""
PACKAGE = Path(__file__).parents[1]


@contextmanager
def host_program(
    command: str, folder: str, environment: Mapping[str, str], on_end: Callable[[], None]
) -> Iterator[HostProgram]:
    """Run a line of the host's `sh` in its own session, with empty input.

    The end of the block kills the program and all its descendants, in any session and with any environment.
    The program runs in `folder`, which is then removed, also when this process is killed. `on_end` is called
    in a thread when the program has ended. Raises InfrastructureError when no process can be started.
    """
    try:
        program = HostProgram(command, folder, environment, on_end)
    except OSError as error:
        raise InfrastructureError(f"the program cannot be started: {error}") from error
    try:
        program.start()
        yield program
    finally:
        program.close()


class HostProgram:
    """A program whose parent process is a supervisor; see `pytest_super.programs.supervisor`."""

    def __init__(
        self, command: str, folder: str, environment: Mapping[str, str], on_end: Callable[[], None]
    ) -> None:
        """Start the supervisor. Raises OSError."""
        self.output = CellOutput()
        # Identifies the processes of a program that has killed its supervisor.
        self._mark = secrets.token_hex(16)
        self._ended = threading.Event()
        self._is_drained = False
        self._code: int | None = None
        # Of the program, once it has ended by itself; -N for the signal N.
        self._reported: int = -signal.SIGKILL
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._waiter = threading.Thread(target=self._await_end, args=(on_end,), daemon=True)
        reader, writer = os.pipe()
        self._reports = open(reader, "rb", 0)  # noqa: SIM115
        source = SUPERVISE.format(folder=str(PACKAGE.parent), portable=is_portable())
        try:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", source, command, folder, str(writer)],
                cwd=folder,
                env={**environment, MARKER: self._mark},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[writer],
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self._reports.close()
            raise
        finally:
            # Our copy would keep the reports open after the supervisor's death.
            os.close(writer)

    def start(self) -> None:
        """Return when the supervisor has started the program. Raises InfrastructureError."""
        line = self._reports.readline().decode().strip()
        if line != STARTED:
            why = line or "its supervisor has died"
            raise InfrastructureError(f"the program cannot be started: {why}")
        self._reader.start()
        self._waiter.start()

    @property
    def is_running(self) -> bool:
        return not self._ended.is_set()

    def end(self) -> int:
        """End the program by SIGTERM, then kill its processes. Returns its exit code, -N for the signal N."""
        if self._code is None:
            try:
                if self.is_running:
                    self._send(ASK)
                    self._ended.wait(GRACE_SECONDS)
            finally:
                self._code = self._kill()
        return self._code

    def close(self) -> None:
        """End the program, the supervisor and all its descendants."""
        supervisor = self._supervisor
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        try:
            if self._waiter.ident is not None:
                self.end()
        finally:
            supervisor.send_signal(signal.SIGCONT)
            with suppress(OSError):
                supervisor.stdin.close()
            try:
                supervisor.wait(KILL_SECONDS + GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._kill_supervisor()
                supervisor.wait()
            supervisor.stdout.close()
            self._reports.close()

    def _await_end(self, on_end: Callable[[], None]) -> None:
        # Nothing is reported if the supervisor has died.
        with suppress(ValueError):
            self._reported = int(self._reports.readline())
        self._ended.set()
        on_end()
        # Until all descendants of the supervisor have ended, or the supervisor itself.
        while self._reports.readline():
            pass

    def _send(self, command: bytes) -> None:
        # The program can have stopped its supervisor.
        self._supervisor.send_signal(signal.SIGCONT)
        assert self._supervisor.stdin is not None
        with suppress(OSError):
            self._supervisor.stdin.write(command)

    def _kill(self) -> int:
        self._send(KILL)
        self._waiter.join(KILL_SECONDS + GRACE_SECONDS)
        if self._waiter.is_alive():
            self._kill_supervisor()
        # The supervisor has the mark too, but it still has to remove the folder.
        kill_all(lambda: marked_processes(self._mark) - {self._supervisor.pid})
        self._reader.join(DRAIN_SECONDS)
        self._is_drained = True
        self._reader.join()
        return self._reported

    def _kill_supervisor(self) -> None:
        """Kill the supervisor and its descendants, because it ignores our commands."""
        kill_all(lambda: descendants(self._supervisor.pid))
        self._supervisor.kill()

    def _read(self) -> None:
        assert self._supervisor.stdout is not None
        descriptor = self._supervisor.stdout.fileno()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # Not `select`, which does not support descriptors above 1023.
        readable = select.poll()
        readable.register(descriptor, select.POLLIN)
        while not self._is_drained:
            if readable.poll(CHECK_MILLISECONDS):
                data = os.read(descriptor, PIECE)
                self.output.add("stream", {"name": "stdout", "text": decoder.decode(data, final=not data)})
                if not data:
                    return
