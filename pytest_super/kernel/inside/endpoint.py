"""An HTTP server on the sandbox's loopback, whose requests the host answers. Sent into the sandbox on demand.

It understands HTTP and nothing else: the host gets the method, the path and the body of each request. Both
sides ask for each piece of a body, so that no more than one waits anywhere and messages of the kernel pass
between them. Runs with whatever Python (3.8 or newer) is there.
"""

from __future__ import annotations

import itertools
import json
import queue
import select
import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

from pytest_super.kernel.inside.frames import encode_control

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 256 * 2**10
MAX_BODY = 16 * 2**20
LONGEST_PATH = 1000
# Of a request that is refused, so many bytes are read all the same.
MAX_REFUSED = 2**28
# Of clients that know the secret so many are served at once; as many more wait until one has left.
MAX_CONNECTIONS = 64
# Of those that have yet to show that they do; for one more the oldest has to go.
MAX_STRANGERS = 64
STRANGER_SECONDS = 10.0
# A connection on which nothing comes for so long is closed, lest idle ones keep others waiting.
IDLE_SECONDS = 15.0
# A client that reads an answer may pause for so long.
WRITE_SECONDS = 600.0
# How often we look whether a client still waits for its answer.
LOOK_SECONDS = 0.2


class Gone(Exception):
    """The client has left."""


class Endpoint:
    """The server, and the requests that the host has yet to answer."""

    def __init__(self, send: Callable[[bytes], None], secret: str) -> None:
        """`send` carries a frame to the host and may wait. Requests must name `secret` in their path."""
        self.prefix = f"/{secret}/"
        self._send = send
        self._ids = itertools.count(1)
        self._inboxes: dict[int, queue.Queue[tuple[dict[str, Any], bytes]]] = {}
        self._server = Server(self)
        self.port: int = self._server.server_address[1]

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def hear(self, fields: dict[str, Any], payload: bytes) -> None:
        """What the host says to one request; nothing when its client has left meanwhile."""
        inbox = self._inboxes.get(fields["id"])
        if inbox is not None:
            inbox.put((fields, payload))

    def ask(self, client: Handler, path: str, size: int) -> None:
        """Have the host answer one request, whose body of `size` bytes is still to be read. Raises Gone."""
        number = next(self._ids)
        inbox = self._inboxes[number] = queue.Queue()
        try:
            self._tell(number, "ask", method=client.command, path=path, size=size)
            self._exchange(number, inbox, client, size)
        finally:
            del self._inboxes[number]
            self._tell(number, "gone")

    def _exchange(self, number: int, inbox: queue.Queue[Any], client: Handler, size: int) -> None:
        fields, payload = client.wait(inbox)
        while fields["what"] == "more":
            piece = client.read_piece(min(size, PIECE))
            size -= len(piece)
            self._tell(number, "body", piece)
            fields, payload = client.wait(inbox)
        client.begin_answer(fields["status"], fields["type"], fields["size"])
        left = fields["size"] - client.write_piece(payload)
        while left:
            self._tell(number, "more")
            left -= client.write_piece(client.wait(inbox)[1])

    def _tell(self, number: int, what: str, payload: bytes = b"", **fields: Any) -> None:
        self._send(encode_control("call", payload, id=number, what=what, **fields))


class Server(socketserver.ThreadingTCPServer):
    """Handles each connection in a thread: whoever connects, those who know the secret are not kept waiting.

    `process_request` must never wait: the server could neither let others in nor end.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._lock = threading.Lock()
        self._strangers: dict[Any, float] = {}
        self._seated: set[Any] = set()
        self._seats = threading.Semaphore(MAX_CONNECTIONS)
        self._places = threading.Semaphore(2 * MAX_CONNECTIONS)
        super().__init__(("127.0.0.1", 0), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._strangers) >= MAX_STRANGERS:
                self._send_away(next(iter(self._strangers)))
            self._strangers[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        latest = time.monotonic() - STRANGER_SECONDS
        with self._lock:
            for request in [request for request, since in self._strangers.items() if since < latest]:
                self._send_away(request)

    def _send_away(self, request: Any) -> None:
        """Its thread sees the end of what there is to read."""
        del self._strangers[request]
        try:
            request.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def seat(self, request: Any) -> bool:
        """Serve this connection, whose client knows the secret, when there is room; False: too many wait."""
        with self._lock:
            self._strangers.pop(request, None)
            if request in self._seated:
                return True
            if not self._places.acquire(blocking=False):
                return False
            self._seated.add(request)
        self._seats.acquire()
        return True

    def shutdown_request(self, request: Any) -> None:
        """Also of a connection for which no thread could be started, since what runs inside has them all."""
        with self._lock:
            self._strangers.pop(request, None)
            is_seated = request in self._seated
            self._seated.discard(request)
        if is_seated:
            self._seats.release()
            self._places.release()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients come and go as they like; nobody reads of it."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    # Head and body of an answer are two writes, the second of which would wait for the client's word.
    disable_nagle_algorithm = True
    server: Server

    def do_POST(self) -> None:
        self._handle()

    def do_GET(self) -> None:
        self._handle()

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def _handle(self) -> None:
        endpoint = self.server.endpoint
        size = self.headers.get("Content-Length", "0")
        if not self.path.startswith(endpoint.prefix) or len(self.path) > LONGEST_PATH:
            self._refuse(404, "there is nothing here")
        elif not self.server.seat(self.connection):
            self._refuse(503, f"{2 * MAX_CONNECTIONS} connections are open: close some")
        elif "Transfer-Encoding" in self.headers or not (size.isascii() and size.isdigit()):
            self._refuse(411, "state the length of the body as Content-Length")
        elif len(size) > 12 or int(size) > MAX_BODY:
            self._refuse(413, f"a body may have {MAX_BODY} bytes")
        else:
            try:
                endpoint.ask(self, self.path[len(endpoint.prefix) - 1 :], int(size))
            except (Gone, OSError):
                self.close_connection = True

    def _refuse(self, status: int, message: str) -> None:
        error = {"error": {"message": message, "type": "pytest_super", "code": "refused"}}
        data = json.dumps(error).encode()
        self.close_connection = True
        try:
            self.begin_answer(status, "application/json", len(data))
            self.write_piece(data)
            self._linger()
        except OSError:
            return

    def _linger(self) -> None:
        """Read what the client still sends: closing before that would take our answer from it."""
        self.connection.shutdown(socket.SHUT_WR)
        left = MAX_REFUSED
        while left > 0 and (piece := self.rfile.read1(PIECE)):
            left -= len(piece)

    def read_piece(self, size: int) -> bytes:
        piece: bytes = self.rfile.read(size)
        if len(piece) < size:
            raise Gone
        return piece

    def wait(self, inbox: queue.Queue[tuple[dict[str, Any], bytes]]) -> tuple[dict[str, Any], bytes]:
        while True:
            try:
                return inbox.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if self._has_left():
                    raise Gone from None

    def _has_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def begin_answer(self, status: int, kind: str, size: int) -> None:
        self.connection.settimeout(WRITE_SECONDS)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.connection.settimeout(IDLE_SECONDS)

    def write_piece(self, payload: bytes) -> int:
        self.connection.settimeout(WRITE_SECONDS)
        self.wfile.write(payload)
        self.connection.settimeout(IDLE_SECONDS)
        return len(payload)
