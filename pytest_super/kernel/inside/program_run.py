"""A program that the bridge runs, from its start to its end. Delivered into the sandbox."""

from __future__ import annotations

import os
import signal
from typing import Any

import zmq

from pytest_super.kernel.inside import frames, processes
from pytest_super.kernel.inside.outbox import Outbox

PIECE = 65536
# At most so many pieces go to the outbox between two looks at what the host sends.
PIECES_AT_ONCE = 16
# Bytes that are read after the program's end: the most that a pipe can hold unless root enlarges it.
# Processes that the program leaves running can write for ever.
LEFT_IN_PIPE = 2**20


class ProgramRun:
    """Puts what the program prints into the outbox; while that is full, the program's pipe is not read.

    What is printed after its end, by processes that it has left running, is read and discarded: a full or a
    closed pipe would stop them.
    """

    def __init__(self, number: int, poller: Any, outbox: Outbox) -> None:
        self._number = number
        self._outbox = outbox
        self._poller = poller
        self._pid = 0
        self._status: int | None = None
        self._is_over = False
        self._left = LEFT_IN_PIPE
        self._has_more = self._has_no_writers = False
        self._pipe, self._end_of_program = os.pipe()
        os.set_blocking(self._pipe, False)

    def start(self, command: str, environment: dict[str, str], files: dict[str, str], folder: str) -> None:
        """Write `files`, then run `command` in a session of its own; report to the host if that fails."""
        try:
            for name, text in files.items():
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(text.encode("utf-8", "replace"))
            self._pid = spawn(command, with_model_at_hand(environment), folder, self._end_of_program)
        except (OSError, ValueError) as error:
            self._is_over = True
            self._tell("ended", error=f"{type(error).__name__}: {error}")
        else:
            processes.prefer_as_victim(self._pid)
            self._poller.register(self._pipe, zmq.POLLIN)
        finally:
            os.close(self._end_of_program)

    def wait_milliseconds(self, most: int) -> int:
        """How long the bridge can wait for events."""
        return 0 if self._has_more and not self._outbox.is_full else most

    def handle(self, _ready: dict[Any, int]) -> None:
        self._has_more = True
        for _ in range(PIECES_AT_ONCE):
            if self._outbox.is_full:
                return
            if not self._forward():
                self._has_more = False
                break
        if self._status is not None and not self._is_over and not (self._has_more and self._left > 0):
            self._is_over = True
            self._tell("ended", status=self._status)

    def stop(self) -> None:
        """Read nothing more until `go_on`."""
        if self._pipe in self._poller:
            self._poller.unregister(self._pipe)

    def go_on(self) -> None:
        if not self._has_no_writers:
            self._poller.register(self._pipe, zmq.POLLIN)

    def record_end(self, ended: dict[int, int]) -> None:
        """Look for the program among the children that have ended."""
        if self._status is None:
            self._status = ended.get(self._pid)

    def give_up(self) -> bool:
        """The host waits for it no more. Returns whether processes can still write."""
        self._is_over = True
        if self._has_no_writers:
            os.close(self._pipe)
        return not self._has_no_writers

    def _forward(self) -> bool:
        """Whether there was something to read."""
        try:
            data = os.read(self._pipe, PIECE)
        except BlockingIOError:
            return False
        if not data:
            # Without writers it is always ready, so polling it would spin.
            self._has_no_writers = True
            self.stop()
            return False
        if self._status is not None:
            self._left -= len(data)
        if not self._is_over:
            self._tell("printed", data)
        return True

    def _tell(self, op: str, payload: bytes = b"", **fields: Any) -> None:
        self._outbox.put(frames.encode_control(op, payload, id=self._number, **fields))


def spawn(command: str, environment: dict[str, str], folder: str, output: int) -> int:
    # Nothing else here depends on the current directory, and a kernel's start changes it too.
    os.chdir(folder)
    # Python ignores them, and the shell of a background job SIGINT.
    ignored = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
    # In its own session, so that `kill 0` in it reaches nothing else.
    return processes.spawn(["/bin/sh", "-c", command], environment, output, setsigdef=ignored)


def with_model_at_hand(environment: dict[str, str]) -> dict[str, str]:
    """The variables of a program: ours, and `environment`. The model on the loopback needs no proxy."""
    # Together: `environment` can have the kernel's own NO_PROXY.
    variables, names = {**os.environ, **environment}, ("NO_PROXY", "no_proxy")
    near = ",".join(filter(None, [next(filter(None, map(variables.get, names)), ""), "127.0.0.1"]))
    return {**variables, **dict.fromkeys(names, near)}
