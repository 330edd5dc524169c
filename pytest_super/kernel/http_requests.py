"""HTTP requests from inside a sandbox, as the host sees them: whole, few at a time, and of a bounded size.

The program that sends them runs beside the bridge and may be in its place, so nothing here trusts what
comes: what breaks the order of a request ends that request.
"""

from __future__ import annotations

import queue
import secrets
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[["HttpRequest"], "Reply"]

PIECE = 256 * 2**10
# Bytes of request bodies that are held at once; a single one may have as many.
MAX_BODIES = 16 * 2**20
# More than the connections that the bridge lets in: their end may be told late.
MAX_CALLS = 128
MAX_ANSWERING = 16
LISTEN_SECONDS = 30.0
LONGEST_PATH = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What the client gets."""

    status: int
    body: bytes
    type: str = "application/json"


class Gone(Exception):
    """The client has left, or the sandbox."""


class HttpRequest:
    """One request from inside."""

    def __init__(self, number: int, method: str, path: str, size: int) -> None:
        self.number = number
        self.method = method
        self.path = path
        self.size = size
        self.body = b""
        self.is_gone = False
        self._inbox: queue.Queue[bytes | None] = queue.Queue()
        self._expected = -1
        self._cancel: Callable[[], None] = lambda: None

    def when_gone(self, cancel: Callable[[], None]) -> None:
        """Let `cancel` be called when the client leaves before it has its answer; Gone when it has left."""
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
        """What the sandbox sent; more or other than it was asked for ends the call."""
        if len(payload) == self._expected:
            self._expected = -1
            self._inbox.put(payload)
        else:
            self.leave()

    def expect(self, size: int) -> None:
        """The next that comes must be `size` bytes, 0 for a mere sign to go on."""
        self._expected = size

    def receive(self) -> bytes:
        """What was expected. Raises Gone."""
        payload = self._inbox.get()
        if payload is None or self.is_gone:
            raise Gone
        return payload


class HttpChannel:
    """Requests of programs inside, answered by a function in threads. `hear` and `end` are the reader's."""

    def __init__(self, tell: Callable[..., None], *, lost: Callable[[], Exception]) -> None:
        """`lost` makes the exception to raise when the sandbox has gone away."""
        self._tell = tell
        self._lost = lost
        self._calls: dict[int, HttpRequest] = {}
        self._answer: Answer | None = None
        self._url = ""
        self._changed = threading.Condition()
        self._room = MAX_BODIES
        self._slots = threading.Semaphore(MAX_ANSWERING)
        self._heard: queue.Queue[dict[str, Any] | None] = queue.Queue(1)

    def listen(self, answer: Answer) -> str:
        """Let `answer` make the reply to each request, in any of MAX_ANSWERING threads; gives the base URL.

        Raises InfrastructureError, and what `lost` makes.
        """
        self._answer = answer
        if not self._url:
            self._url = self._open()
        return self._url

    def _open(self) -> str:
        secret = secrets.token_urlsafe(16)
        self._tell("listen", (Path(__file__).parent / "inside" / "endpoint.py").read_bytes(), secret=secret)
        try:
            heard = self._heard.get(timeout=LISTEN_SECONDS)
        except queue.Empty:
            raise InfrastructureError("the sandbox does not open its endpoint for models") from None
        if heard is None:
            raise self._lost()
        if not isinstance(heard.get("port"), int):
            raise InfrastructureError(f"the sandbox has no endpoint for models: {heard.get('error')}")
        return f"http://127.0.0.1:{heard['port']}/{secret}"

    def close(self) -> None:
        """Answer no more; calls under way are gone."""
        self._answer = None
        with self._changed:
            calls = list(self._calls.values())
        for call in calls:
            call.leave()

    def end(self) -> None:
        self._told(None)
        self.close()

    def hear(self, fields: dict[str, Any], payload: bytes) -> None:
        """Take in what the sandbox sent about a call; what is none is dropped."""
        if fields["op"] == "listening":
            self._told(fields)
            return
        number, what = fields.get("id"), fields.get("what")
        if not isinstance(number, int):
            return
        call = self._calls.get(number)
        if call is None:
            if what == "ask":
                self._begin(number, fields)
        elif what in ("body", "more"):
            call.take(payload)
        else:
            call.leave()

    def _told(self, fields: dict[str, Any] | None) -> None:
        with suppress(queue.Full):
            self._heard.put_nowait(fields)

    def _begin(self, number: int, fields: dict[str, Any]) -> None:
        call = call_of(number, fields)
        if call is None or self._answer is None or len(self._calls) >= MAX_CALLS:
            return
        with self._changed:
            self._calls[number] = call
        threading.Thread(target=self._serve, args=(call, self._answer), daemon=True).start()

    def _serve(self, call: HttpRequest, answer: Answer) -> None:
        """The thread of one call. Nothing is held for it but its number before there is room."""
        try:
            with self._slots:
                self._send(call, self._answered(call, answer))
        except Gone:
            pass
        finally:
            with self._changed:
                del self._calls[call.number]

    def _answered(self, call: HttpRequest, answer: Answer) -> Reply:
        self._reserve(call.size)
        try:
            self._receive(call)
            return answer(call)
        finally:
            call.body = b""
            self._reserve(-call.size)

    def _reserve(self, size: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: size <= self._room)
            self._room -= size
            self._changed.notify_all()

    def _receive(self, call: HttpRequest) -> None:
        pieces = []
        for start in range(0, call.size, PIECE):
            call.expect(min(PIECE, call.size - start))
            self._say(call, "more")
            pieces.append(call.receive())
        call.body = b"".join(pieces)

    def _send(self, call: HttpRequest, reply: Reply) -> None:
        body = reply.body
        call.expect(0)
        self._say(call, "answer", body[:PIECE], status=reply.status, type=reply.type, size=len(body))
        for start in range(PIECE, len(body), PIECE):
            call.receive()
            call.expect(0)
            self._say(call, "piece", body[start : start + PIECE])

    def _say(self, call: HttpRequest, what: str, payload: bytes = b"", **fields: Any) -> None:
        if call.is_gone:
            raise Gone
        self._tell("call", payload, id=call.number, what=what, **fields)


def call_of(number: int, fields: dict[str, Any]) -> HttpRequest | None:
    method, path, size = (fields.get(name) for name in ("method", "path", "size"))
    if not (isinstance(method, str) and isinstance(path, str) and isinstance(size, int)):
        return None
    if len(method) > LONGEST_PATH or len(path) > LONGEST_PATH or not 0 <= size <= MAX_BODIES:
        return None
    return HttpRequest(number, method, path, size)
