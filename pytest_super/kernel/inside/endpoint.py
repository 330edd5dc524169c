"""An HTTP server on the sandbox's loopback; the host answers its requests. Sent into the sandbox on demand.

It understands only HTTP: the host receives the method, the path, some headers and the body of each request.
The receiver of a body asks for each piece, so that at most one piece waits anywhere and the kernel's messages
pass between them. An answer whose size is not known yet is a stream, which an empty piece ends. Requires
Python 3.8 or newer.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import select
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from typing import Any

from pytest_super.kernel.inside.frames import encode_control

PIECE = 256 * 2**10
MAX_BODY = 16 * 2**20
LONGEST_PATH = 1000
# Characters of a header that pass.
LONGEST_HEADER = 1000
# Bytes that are still read of a refused request.
MAX_REFUSED = 2**28
# Authenticated connections (their path names the secret) served at once. More are refused.
MAX_CONNECTIONS = 128
# Connections that have not authenticated yet. When the limit is reached, the oldest is closed.
MAX_UNAUTHENTICATED = 64
# An idle connection is closed after this time, so that it does not keep others waiting.
IDLE_SECONDS = 15.0
# A client can pause for this long while it reads an answer.
WRITE_SECONDS = 600.0
# Interval at which a waiting request checks whether its client is still connected.
CHECK_SECONDS = 0.2


class ClientGone(Exception):
    """The client has closed the connection."""


class Endpoint:
    """The server and the requests that the host has not answered yet."""

    def __init__(self, send: Callable[[bytes], None], secret: str, headers: list[str]) -> None:
        """`send` sends a frame and can block; paths begin with `secret`; the host gets these `headers`."""
        self.prefix = f"/{secret}/"
        self._send = send
        self._headers = headers
        self._ids = itertools.count(1)
        self._inboxes: dict[int, queue.Queue[tuple[dict[str, Any], bytes]]] = {}
        self._server = EndpointServer(self)
        self.port: int = self._server.server_address[1]

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def receive(self, fields: dict[str, Any], payload: bytes) -> None:
        """Accept a message of the host for one request; it is dropped if the client has left."""
        inbox = self._inboxes.get(fields["id"])
        if inbox is not None:
            inbox.put((fields, payload))

    def ask(self, client: EndpointHandler, path: str, size: int) -> None:
        """Let the host answer one request whose body of `size` bytes is not read yet. Raises ClientGone."""
        number = next(self._ids)
        inbox = self._inboxes[number] = queue.Queue()
        try:
            headers = client.some_headers(self._headers)
            self._send_message(number, "ask", method=client.command, path=path, size=size, headers=headers)
            self._exchange(number, inbox, client, size)
        finally:
            del self._inboxes[number]
            self._send_message(number, "gone")

    def _exchange(self, number: int, inbox: queue.Queue[Any], client: EndpointHandler, size: int) -> None:
        fields, payload = client.wait(inbox)
        while fields["what"] == "more":
            piece = client.read_piece(min(size, PIECE))
            size -= len(piece)
            self._send_message(number, "body", piece)
            fields, payload = client.wait(inbox)
        client.begin_answer(fields["status"], fields["type"], fields["size"])
        if fields["size"] is None:
            self._relay(number, inbox, client)
            return
        left = fields["size"] - client.write_piece(payload)
        while left:
            self._send_message(number, "more")
            left -= client.write_piece(client.wait(inbox)[1])

    def _relay(self, number: int, inbox: queue.Queue[Any], client: EndpointHandler) -> None:
        piece = b"."
        while piece:
            self._send_message(number, "more")
            piece = client.wait(inbox)[1]
            client.write_chunk(piece)

    def _send_message(self, number: int, what: str, payload: bytes = b"", **fields: Any) -> None:
        self._send(encode_control("call", payload, id=number, what=what, **fields))


class EndpointServer(socketserver.ThreadingTCPServer):
    """Handles each connection in a thread. Clients without the secret cannot block those that know it.

    `process_request` must never block: the server could neither accept other connections nor end.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._lock = threading.Lock()
        # A dict without values, because it keeps the order of insertion.
        self._unauthenticated: dict[Any, None] = {}
        self._authenticated: set[Any] = set()
        super().__init__(("127.0.0.1", 0), EndpointHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
                oldest = next(iter(self._unauthenticated))
                del self._unauthenticated[oldest]
                # Its thread then reads the end of the input and closes it.
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._unauthenticated[request] = None
        super().process_request(request, client_address)

    def admit(self, request: Any) -> bool:
        """Whether this authenticated connection can be served, next to those that are served already."""
        with self._lock:
            self._unauthenticated.pop(request, None)
            if len(self._authenticated) < MAX_CONNECTIONS:
                self._authenticated.add(request)
            return request in self._authenticated

    def shutdown_request(self, request: Any) -> None:
        """Free the connection's place. Also called when no thread could be started for it (pids limit)."""
        with self._lock:
            self._unauthenticated.pop(request, None)
            self._authenticated.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients can disconnect at any time, and nobody reads the output."""


class EndpointHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    # Head and body of an answer are two writes; with Nagle's algorithm the second waits for the client's ACK.
    disable_nagle_algorithm = True
    server: EndpointServer

    def do_POST(self) -> None:
        self._handle()

    def do_GET(self) -> None:
        self._handle()

    def log_message(self, *_: Any) -> None:
        """Print nothing: nobody reads the output."""

    def _handle(self) -> None:
        endpoint = self.server.endpoint
        size = self.headers.get("Content-Length", "0")
        # The secret is checked first, so that a client without it cannot take a place.
        if not self.path.startswith(endpoint.prefix) or len(self.path) > LONGEST_PATH:
            self._refuse(404, "there is nothing here")
        elif not self.server.admit(self.connection):
            self._refuse(503, f"{MAX_CONNECTIONS} connections are open: close some")
        elif "Transfer-Encoding" in self.headers or not (size.isascii() and size.isdigit()):
            self._refuse(411, "state the length of the body as Content-Length")
        # The length first: `int` raises ValueError for thousands of digits.
        elif len(size) > 12 or int(size) > MAX_BODY:
            self._refuse(413, f"a body can have at most {MAX_BODY} bytes")
        else:
            try:
                endpoint.ask(self, self.path[len(endpoint.prefix) - 1 :], int(size))
            except (ClientGone, OSError):
                self.close_connection = True

    def _refuse(self, status: int, message: str) -> None:
        error = {"error": {"message": message, "type": "pytest_super", "code": "refused"}}
        data = json.dumps(error).encode()
        # The body was not read, so the next request on this connection could not be found.
        self.close_connection = True
        try:
            self.begin_answer(status, "application/json", len(data))
            self.write_piece(data)
            # Read the rest of the request: closing earlier would reset the connection and lose our answer.
            self.connection.shutdown(socket.SHUT_WR)
            left = MAX_REFUSED
            while left > 0 and (piece := self.rfile.read1(PIECE)):
                left -= len(piece)
        except OSError:
            return

    def some_headers(self, names: Iterable[str]) -> dict[str, str]:
        """Return the request's headers with these names, if it has them."""
        return {name: self.headers[name][:LONGEST_HEADER] for name in names if name in self.headers}

    def read_piece(self, size: int) -> bytes:
        piece: bytes = self.rfile.read(size)
        if len(piece) < size:
            raise ClientGone
        return piece

    def wait(self, inbox: queue.Queue[Any]) -> Any:
        while True:
            try:
                return inbox.get(timeout=CHECK_SECONDS)
            except queue.Empty:
                readable, _, _ = select.select([self.connection], [], [], 0)
                # Peek, because the byte can be the beginning of the client's next request.
                if readable and not self.connection.recv(1, socket.MSG_PEEK):
                    raise ClientGone from None

    def begin_answer(self, status: int, kind: str, size: int | None) -> None:
        """`size` is None for an answer that comes in chunks."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        length = ("Transfer-Encoding", "chunked") if size is None else ("Content-Length", str(size))
        self.send_header(*length)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def write_piece(self, payload: bytes) -> int:
        self.connection.settimeout(WRITE_SECONDS)
        self.wfile.write(payload)
        self.connection.settimeout(IDLE_SECONDS)
        return len(payload)

    def write_chunk(self, payload: bytes) -> None:
        """One chunk; an empty one ends the answer."""
        self.write_piece(b"%x\r\n%s\r\n" % (len(payload), payload))
