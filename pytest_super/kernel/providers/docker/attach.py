"""The standard streams of a container over the engine's attach connection."""

from __future__ import annotations

import contextlib
import io
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docker import APIClient

FRAME = struct.Struct(">BxxxI")
STDERR = 2
CHUNK = 1 << 16
TAIL = 8192


class AttachedStream:
    """A Stream over an attach connection; the last TAIL bytes of standard error are in `stderr`."""

    # Not by docker-py's `frames_iter`, which polls and receives for every header of eight bytes.

    def __init__(self, connection: socket.socket, owner: Any) -> None:
        """`owner` also holds the connection and is closed with it."""
        # docker-py sets a time-out, which a minute without output would hit.
        connection.settimeout(None)
        self._connection = connection
        self._received = io.BufferedReader(connection.makefile("rb", 0), CHUNK)
        self._owner = owner
        self._reading = threading.Lock()
        self._kind = 0
        self._left = 0
        self.stderr = b""

    def read(self, size: int) -> bytes:
        with self._reading:
            try:
                return self._payload(size)
            except (OSError, ValueError, EOFError, struct.error):
                # A broken connection ends the stream; `DockerSandbox.cause_of_death` finds the reason.
                return b""

    def _payload(self, size: int) -> bytes:
        while True:
            while not self._left:
                self._kind, self._left = FRAME.unpack(self._received.read(FRAME.size))
            data = self._received.read1(min(size, self._left))
            if not data:
                raise EOFError
            self._left -= len(data)
            if self._kind != STDERR:
                return data
            self.stderr = (self.stderr + data)[-TAIL:]

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        # The shutdown has ended a blocked read, so no thread uses the file descriptor when it is closed.
        with self._reading, contextlib.suppress(OSError):
            self._received.close()
            self._connection.close()
            self._owner.close()


def attach(api: APIClient, container: str) -> AttachedStream:
    """Attach to the container's three streams. Call it before the container starts, or output is lost."""
    return stream_of(api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}))


def start_program(api: APIClient, program: str) -> AttachedStream:
    """Start a program of `exec_create` next to the container's main process; returns its output."""
    return stream_of(api.exec_start(program, socket=True))


def stream_of(wrapped: Any) -> AttachedStream:
    """The stream over what docker-py returns for a connection."""
    # docker-py returns a read-only file over the socket; its own code reaches the socket in this way too. It
    # keeps the response there, which must be closed as well: otherwise its finalizer fails.
    connection, response = getattr(wrapped, "_sock", wrapped), getattr(wrapped, "_response", wrapped)
    return AttachedStream(connection, response)
