"""The standard streams of a container over the engine's attach connection."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from docker import APIClient

FRAME = struct.Struct(">BxxxI")
STDERR = 2
CHUNK = 1 << 16
TAIL = 8192


class Closable(Protocol):
    def close(self) -> None: ...


class AttachedStream:
    """A Stream over an attach connection, whose frames say which of the two outputs they carry.

    Standard error is for a person: the last `TAIL` bytes stay in `stderr`.
    """

    def __init__(self, connection: socket.socket, owner: Closable) -> None:
        """`owner`: what holds the connection too, and is closed with it."""
        # docker-py gives it its own time-out, which a quiet minute would hit.
        connection.settimeout(None)
        self._connection = connection
        self._owner = owner
        self._reading = threading.Lock()
        self._chunk = memoryview(b"")
        self._kind = 0
        self._left = 0
        self.stderr = b""

    def read(self, size: int) -> bytes:
        with self._reading:
            try:
                return self._payload(size)
            except (OSError, ValueError, EOFError):
                return b""

    def _payload(self, size: int) -> bytes:
        while True:
            while not self._left:
                self._kind, self._left = FRAME.unpack(self._exactly(FRAME.size))
            data = self._take(min(size, self._left))
            self._left -= len(data)
            if self._kind != STDERR:
                return data
            self.stderr = (self.stderr + data)[-TAIL:]

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._take(size - len(data))
        return data

    def _take(self, most: int) -> bytes:
        if not self._chunk:
            self._chunk = memoryview(self._connection.recv(CHUNK))
            if not self._chunk:
                raise EOFError
        data, self._chunk = bytes(self._chunk[:most]), self._chunk[most:]
        return data

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        # The shutdown has ended a blocked read, so that its file descriptor is not closed under it.
        with self._reading, contextlib.suppress(OSError):
            self._connection.close()
            self._owner.close()


def attach(api: APIClient, container: str) -> AttachedStream:
    """Attach to the container's three streams; before it starts, or output would be lost."""
    return stream_of(api.attach_socket(container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}))


def run_beside(api: APIClient, made: str) -> AttachedStream:
    """Start a program that was made to run beside a container's main process; gives its output."""
    return stream_of(api.exec_start(made, socket=True))


def stream_of(wrapped: Any) -> AttachedStream:
    """Of what docker-py gives for a connection."""
    # docker-py gives the read-only file over the socket; its own code reaches the socket in this way too. The
    # response that it keeps there is what has to be closed: it would miss its file when it is collected.
    connection, response = getattr(wrapped, "_sock", wrapped), getattr(wrapped, "_response", wrapped)
    return AttachedStream(connection, response)
