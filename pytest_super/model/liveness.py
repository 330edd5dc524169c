"""A gateway that answers nothing at all, since it is stopped, say: noticed while requests wait for it.

A call may take as long as its provider, so how long it takes tells nothing.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ALIVE = "/super/alive"
# Seconds. Much more than the longest that one request keeps the gateway's loop for itself.
LOOK_EVERY, LONGEST_SILENCE = 10.0, 60.0
LONGEST_DEATH = 10.0
# struct ucred: process, user, group.
CREDENTIALS = struct.Struct("3i")


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path, timeout: float | None = None) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(str(self.path))
        except OSError:
            self.close()
            raise

    def break_off(self) -> None:
        """End the request from another thread than the one that waits for its answer."""
        with suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)

    @property
    def listener(self) -> int:
        """The process at the other end."""
        given = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        process: int = CREDENTIALS.unpack(given)[0]
        return process


def connected(path: Path, timeout: float | None = None) -> UnixConnection:
    connection = UnixConnection(path, timeout)
    connection.connect()
    return connection


class Watch:
    """Asks the server for a sign of life while requests wait for it, and kills one that gives none.

    It asks every `look_every` seconds, in one thread for all requests, and waits `longest_silence` seconds
    for the sign. `tell` is given one line about a server that was ended; the requests to it break.
    """

    def __init__(
        self, path: Path, tell: Callable[[str], None], *, look_every: float, longest_silence: float
    ) -> None:
        self._path = path
        self._tell = tell
        self._look_every = look_every
        self._longest_silence = longest_silence
        self._waiting: set[UnixConnection] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    @contextmanager
    def over(self, connection: UnixConnection) -> Iterator[None]:
        """A request is made on this connection."""
        with self._changed:
            self._waiting.add(connection)
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._waiting.discard(connection)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _run(self) -> None:
        while self._is_due():
            if silent := self._silent_server():
                self._end(silent)

    def _is_due(self) -> bool:
        """Wait until it is time to look; False when the watch is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            self._changed.wait_for(lambda: self._is_closed, self._look_every)
            return not self._is_closed

    def _silent_server(self) -> UnixConnection | None:
        """A connection to a server that gives no sign of life; None where one lives, or none is there."""
        connection = UnixConnection(self._path, self._longest_silence)
        try:
            connection.request("GET", ALIVE)
            connection.getresponse().read()
        except TimeoutError:
            return connection
        except (OSError, http.client.HTTPException):
            pass
        connection.close()
        return None

    def _end(self, silent: UnixConnection) -> None:
        with self._changed:
            waiting = [*self._waiting]
        # It has kept this connection, so that the number is still its own.
        with suppress(ProcessLookupError):
            os.kill(silent.listener, signal.SIGKILL)
        self._tell(f"it answered nothing for {self._longest_silence:g} s and was ended")
        silent.sock.settimeout(LONGEST_DEATH)
        with suppress(OSError):
            silent.sock.recv(1)
        silent.close()
        # Where it could not be ended, nothing else would break them.
        for connection in waiting:
            connection.break_off()
