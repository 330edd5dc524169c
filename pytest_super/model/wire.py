"""What the gateway and its clients say to each other over the gateway's socket: one request a connection.

A request is two lines and a body: the token of the run, a JSON object with the `size` of the body, and the
body, which is a program's, unread. The gateway reads no more of a client that does not know the token.

The answer is lines of JSON objects. Any line is a sign of life:

    {"waits": …}   what the trial's oldest call waits for; "" if for nothing but an answer
    {"events": …}  server-sent events of a stream, whole ones
    {"last": …}    the `error`, or what the request asks for
"""

import json
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_super.store.json_lines import to_line

Line = dict[str, Any]

WAITS, EVENTS, LAST = "waits", "events", "last"
PIECE = 256 * 2**10


def token_line(token: str) -> bytes:
    return f"{token}\n".encode()


class Connection:
    """A client's connection."""

    def __init__(self, path: Path, timeout: float) -> None:
        """Raises OSError."""
        # The beginning of a line.
        self._rest = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(str(path))
        except OSError:
            self.close()
            raise

    @property
    def process(self) -> int:
        """The id of the process that listens, even if another does so at the same path by now."""
        if sys.platform == "linux":
            size = struct.calcsize("3i")
            credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            return int(struct.unpack("3i", credentials)[0])
        else:
            # macOS: SOL_LOCAL and LOCAL_PEERPID, which Python does not name.
            return self._socket.getsockopt(0, 2)

    def send(self, token: str, request: Line, body: bytes) -> None:
        """Raises OSError."""
        self._socket.sendall(token_line(token) + to_line({**request, "size": len(body)}).encode() + body)

    def read(self, seconds: float) -> list[Line]:
        """The lines that end in the next piece. Raises TimeoutError if nothing comes, and ConnectionError."""
        self._socket.settimeout(max(0.001, seconds))
        piece = self._socket.recv(PIECE)
        if not piece:
            raise ConnectionError
        self._rest += piece
        if b"\n" not in piece:
            return []
        *lines, self._rest = self._rest.split(b"\n")
        return [json.loads(line) for line in lines]

    def break_off(self) -> None:
        """End the request. Called in a thread other than the one that waits for the answer."""
        # Not `close`, which does not wake a thread that is waiting.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()
