"""An HTTP server on the loopback interface for one program on the host, which knows the server's token."""

from __future__ import annotations

import queue
import secrets
import threading
from contextlib import suppress
from functools import partial
from typing import Any, cast

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.http_requests import EVENTS, Answer, Gone, HttpRequest, Reply
from pytest_super.kernel.inside import endpoint
from pytest_super.model.protocols.registry import CLIENT_HEADERS, KEY_HEADERS
from pytest_super.trial.model_replies import refusal

# Interval at which the server checks whether it has to end.
POLL_SECONDS = 0.05
END = b""


class TrialServer:
    """A context manager that serves requests. Calls `answer` in one thread per request."""

    # Every path is served: unlike inside a sandbox, the secret is in a header.
    prefix = "/"

    def __init__(self, answer: Answer) -> None:
        """Raises InfrastructureError."""
        self.token = secrets.token_urlsafe()
        self._answer = answer
        self._requests: set[HttpRequest] = set()
        try:
            self._server = Server(self)
        except OSError as error:
            raise InfrastructureError(f"no server for the program: {error}") from error
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> TrialServer:
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(POLL_SECONDS,), daemon=True, name="super-trial").start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening and cancel the running requests."""
        self._server.shutdown()
        self._server.server_close()
        # A copy, because the connections' threads discard requests.
        for request in list(self._requests):
            request.leave()

    def ask(self, client: endpoint.EndpointHandler, path: str, size: int) -> None:
        """Answer one request whose body is not read yet. Raises endpoint.ClientGone, OSError."""
        request = HttpRequest(0, client.command, path, size, client.some_headers(CLIENT_HEADERS))
        request.body = client.read_piece(size)
        # One place: the client's connection sets the pace of a stream.
        replies: queue.Queue[Any] = queue.Queue(1)
        request.relay_by(partial(relay, request, replies))
        self._requests.add(request)
        threading.Thread(target=self._serve, args=(request, replies), daemon=True).start()
        try:
            send_answer(client, replies)
        except (endpoint.ClientGone, OSError):
            request.leave()
            raise
        finally:
            self._requests.discard(request)

    def _serve(self, request: HttpRequest, replies: queue.Queue[Any]) -> None:
        """Runs in its own thread, while the connection's thread checks whether the client is still there."""
        reply: Reply | None = refusal(500, "server_error", "this request could not be answered")
        try:
            reply = self._answer(request)
        except Gone:
            reply = refusal(410, "trial_ended", "the trial is over")
        finally:
            put(request, replies, END if reply is None or request.is_streamed else reply)


def relay(request: HttpRequest, replies: queue.Queue[Any], event: bytes) -> None:
    put(request, replies, event)
    if request.is_gone:
        raise Gone


def put(request: HttpRequest, replies: queue.Queue[Any], item: Any) -> None:
    """Put it as soon as there is a place, unless the client has left."""
    while not request.is_gone:
        with suppress(queue.Full):
            replies.put(item, timeout=endpoint.CHECK_SECONDS)
            return


def send_answer(client: endpoint.EndpointHandler, replies: queue.Queue[Any]) -> None:
    """Send a reply, or a stream of events until its end. Raises endpoint.ClientGone, OSError."""
    item = client.wait(replies)
    if isinstance(item, Reply):
        client.begin_answer(item.status, item.type, len(item.body))
        client.write_piece(item.body)
        return
    client.begin_answer(200, EVENTS, None)
    while item is not END:
        client.write_chunk(item)
        item = client.wait(replies)
    client.write_chunk(END)


class Server(endpoint.EndpointServer):
    """Checks the token of each request."""

    def __init__(self, trial_server: TrialServer) -> None:
        self.expected = f"Bearer {trial_server.token}".encode()
        super().__init__(cast("endpoint.Endpoint", trial_server))

    def finish_request(self, request: Any, client_address: Any) -> None:
        Handler(request, client_address, self)


class Handler(endpoint.EndpointHandler):
    """One connection."""

    server: Server

    def _handle(self) -> None:
        key = next((self.headers[name] for name in KEY_HEADERS if name in self.headers), "")
        given = self.headers.get("Authorization", "") or f"Bearer {key}"
        if secrets.compare_digest(given.encode("utf-8", "replace"), self.server.expected):
            super()._handle()
        else:
            self._refuse(401, "send the token of this trial as `Authorization: Bearer TOKEN`")

    do_PUT = do_PATCH = do_DELETE = _handle
