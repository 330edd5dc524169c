"""The host's side of HTTP requests from inside a sandbox: complete requests of bounded size, few at a time.

Code inside can replace the bridge. A message that breaks the protocol of a request ends that request.
"""

import queue
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.schema import MAX_BODIES, PIECE

Answer = Callable[["HttpRequest"], "Reply | None"]
"""Returns the reply, or None if it has relayed a stream."""

# More than the connections that the endpoint serves at once, because their end can be reported late.
MAX_REQUESTS = 192
MAX_ANSWERING = 16
LISTEN_SECONDS = 30.0
EVENTS = "text/event-stream"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The response to a request."""

    status: int
    body: bytes
    type: str = "application/json"


class Gone(Exception):
    """The client or the sandbox has closed the connection."""


class HttpRequest:
    """One request from inside."""

    def __init__(self, number: int, method: str, path: str, size: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.method = method
        self.path = path
        self.size = size
        self.headers = headers
        """Those that `listen` asked for, in small letters."""
        self.is_streamed = False
        """Whether its answer is a stream that has begun."""
        self.body = b""
        self.is_gone = False
        self._inbox: queue.Queue[bytes | None] = queue.Queue()
        self._expected = -1
        self._cancel: Callable[[], None] = lambda: None
        self._send_event: Callable[[bytes], None] = lambda _: None

    def relay_by(self, send: Callable[[bytes], None]) -> None:
        self._send_event = send

    def relay(self, event: bytes) -> None:
        """Send the next event of a stream, which is the answer; waits for the client. Raises Gone."""
        self._send_event(event)
        self.is_streamed = True

    def when_gone(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` if the client leaves before it has its answer. Raises Gone if it has already left."""
        # Set before the check: a client that leaves in between must not be missed.
        self._cancel = cancel
        if self.is_gone:
            raise Gone

    def leave(self) -> None:
        if self.is_gone:
            return
        self.is_gone = True
        self._inbox.put(None)
        self._cancel()

    def take(self, payload: bytes) -> None:
        """Accept data from the sandbox; data of an unexpected size ends the request."""
        if len(payload) == self._expected:
            self._expected = -1
            self._inbox.put(payload)
        else:
            self.leave()

    def expect(self, size: int) -> None:
        """Expect `size` bytes next; 0 for a message that only asks for more."""
        self._expected = size

    def receive(self) -> bytes:
        """Wait for the expected data. Raises Gone."""
        payload = self._inbox.get()
        if payload is None or self.is_gone:
            raise Gone
        return payload


class HttpChannel:
    """Answers requests of programs inside, in threads. The reader thread calls `receive` and `end`."""

    def __init__(self, send_control: Callable[..., None], *, lost: Callable[[], Exception]) -> None:
        """`lost` makes the exception to raise when the sandbox is gone."""
        self._send_control = send_control
        self._lost = lost
        self._requests: dict[int, HttpRequest] = {}
        self._answer: Answer | None = None
        self._url = ""
        self._changed = threading.Condition()
        self._room = MAX_BODIES
        self._slots = threading.Semaphore(MAX_ANSWERING)
        # One place: a bridge that code inside has replaced can report any number of times.
        self._listening: queue.Queue[dict[str, Any] | None] = queue.Queue(1)

    def listen(self, answer: Answer, headers: Sequence[str]) -> str:
        """Answer requests, of which these `headers` pass, in threads; the base URL. Raises as `_open`."""
        self._answer = answer
        if not self._url:
            self._url = self._open(headers)
        return self._url

    def _open(self, headers: Sequence[str]) -> str:
        secret = secrets.token_urlsafe(16)
        program = (Path(__file__).parent / "inside" / "endpoint.py").read_bytes()
        self._send_control("listen", program, secret=secret, headers=list(headers))
        try:
            fields = self._listening.get(timeout=LISTEN_SECONDS)
        except queue.Empty:
            raise InfrastructureError("the sandbox did not open its endpoint for models in time") from None
        if fields is None:
            raise self._lost()
        if fields["port"] is None:
            raise InfrastructureError(f"the sandbox cannot open its endpoint for models: {fields['error']}")
        return f"http://127.0.0.1:{fields['port']}/{secret}"

    def close(self) -> None:
        """Stop answering; running requests end as if their client had left."""
        self._answer = None
        with self._changed:
            requests = list(self._requests.values())
        for request in requests:
            request.leave()

    def end(self) -> None:
        self._report_listening(None)
        self.close()

    def receive(self, op: str, fields: dict[str, Any], payload: bytes) -> None:
        """Accept a message of the sandbox about a request; one that belongs to none is ignored."""
        if op == "listening":
            self._report_listening(fields)
            return
        number, what = fields["id"], fields["what"]
        request = self._requests.get(number)
        if request is None:
            if what == "ask":
                self._begin(fields)
        elif what in ("body", "more"):
            request.take(payload)
        else:
            request.leave()

    def _report_listening(self, fields: dict[str, Any] | None) -> None:
        with suppress(queue.Full):
            self._listening.put_nowait(fields)

    def _begin(self, fields: dict[str, Any]) -> None:
        if self._answer is None or len(self._requests) >= MAX_REQUESTS:
            return
        request = HttpRequest(
            fields["id"], fields["method"], fields["path"], fields["size"], fields["headers"]
        )
        request.relay_by(partial(self._relay, request))
        with self._changed:
            self._requests[request.number] = request
        threading.Thread(target=self._serve, args=(request, self._answer), daemon=True).start()

    def _serve(self, request: HttpRequest, answer: Answer) -> None:
        """The thread of one request. It reads the body only when there is a slot and memory for it."""
        try:
            with self._slots:
                reply = self._reply_to(request, answer)
                if reply is None:
                    # An empty piece ends a stream.
                    self._send_piece(request, b"")
                else:
                    self._send(request, reply)
        except Gone:
            pass
        finally:
            with self._changed:
                del self._requests[request.number]

    def _reply_to(self, request: HttpRequest, answer: Answer) -> Reply | None:
        self._reserve(request.size)
        try:
            self._read_body(request)
            return answer(request)
        finally:
            # Before its room is given to another body.
            request.body = b""
            self._reserve(-request.size)

    def _reserve(self, size: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: size <= self._room)
            self._room -= size
            self._changed.notify_all()

    def _read_body(self, request: HttpRequest) -> None:
        pieces = []
        for start in range(0, request.size, PIECE):
            request.expect(min(PIECE, request.size - start))
            self._send_message(request, "more")
            pieces.append(request.receive())
        request.body = b"".join(pieces)

    def _send(self, request: HttpRequest, reply: Reply) -> None:
        body = reply.body
        # Before each piece is sent: the request for the next one can arrive while we still send.
        request.expect(0)
        fields = {"status": reply.status, "type": reply.type, "size": len(body)}
        self._send_message(request, "answer", body[:PIECE], **fields)
        for start in range(PIECE, len(body), PIECE):
            self._send_piece(request, body[start : start + PIECE])

    def _relay(self, request: HttpRequest, event: bytes) -> None:
        if not request.is_streamed:
            request.expect(0)
            self._send_message(request, "answer", status=200, type=EVENTS, size=None)
        for start in range(0, len(event), PIECE):
            self._send_piece(request, event[start : start + PIECE])

    def _send_piece(self, request: HttpRequest, piece: bytes) -> None:
        request.receive()
        request.expect(0)
        self._send_message(request, "piece", piece)

    def _send_message(self, request: HttpRequest, what: str, payload: bytes = b"", **fields: Any) -> None:
        if request.is_gone:
            raise Gone
        self._send_control("call", payload, id=request.number, what=what, **fields)
