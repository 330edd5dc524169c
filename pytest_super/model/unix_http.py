"""HTTP over a unix socket."""

from __future__ import annotations

import http.client
import select
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class UnixConnection(http.client.HTTPConnection):
    """A connection to a server's socket; `timeout` bounds every single operation."""

    def __init__(self, path: Path, timeout: float | None = None) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        # http.client itself connects only by TCP.
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(str(self.path))
        except OSError:
            self.close()
            raise

    def is_answered_within(self, seconds: float) -> bool:
        """Wait for the answer to begin, or for the connection to break. Raises OSError when it is closed."""
        # Not the socket's time-out, after which http.client cannot continue to read.
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        return bool(poller.poll(max(0.0, seconds) * 1000))

    def read_response(self) -> HttpResponse:
        response = self.getresponse()
        return HttpResponse(status=response.status, headers=response.headers, body=response.read())

    def limit(self, seconds: float) -> None:
        """Let the next operation take so long, even in the middle of a response."""
        self.sock.settimeout(seconds)

    def break_off(self) -> None:
        """End the request. Called in a thread other than the one that waits for the answer."""
        # Not `close`, which does not wake a thread that is waiting. There may be no socket yet, or no longer.
        with suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)


def connected(path: Path, timeout: float | None = None) -> UnixConnection:
    connection = UnixConnection(path, timeout)
    connection.connect()
    return connection
