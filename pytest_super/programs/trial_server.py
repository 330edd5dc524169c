"""An HTTP server on the host's loopback for one program beside a trial, which knows its token."""

from __future__ import annotations

import queue
import secrets
import threading
from typing import TYPE_CHECKING, Any, cast

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.http_requests import Gone, HttpRequest
from pytest_super.kernel.inside import endpoint
from pytest_super.trial.model_endpoint import refusal

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_super.kernel.http_requests import Answer

# How soon the server notices that it is to end.
POLL_SECONDS = 0.05


class TrialServer:
    """Serves while it is entered. `answer` makes the replies, in a thread for each request."""

    # Of the paths that are served: all. The secret is in a header here.
    prefix = "/"

    def __init__(self, answer: Answer) -> None:
        """Raises InfrastructureError."""
        self.token = secrets.token_urlsafe()
        self._answer = answer
        self._calls: set[HttpRequest] = set()
        try:
            self._server = Server(self)
        except OSError as error:
            raise InfrastructureError(f"no server for the program: {error}") from error
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> TrialServer:
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(POLL_SECONDS,), daemon=True, name="super-trial").start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        """Listen no more; requests under way are broken off."""
        self._server.shutdown()
        self._server.server_close()
        for call in list(self._calls):
            call.leave()

    def ask(self, client: endpoint.Handler, path: str, size: int) -> None:
        """Have one request answered whose body is still to be read. Raises endpoint.Gone, OSError."""
        call = HttpRequest(0, client.command, path, size)
        call.body = client.read_piece(size)
        answered: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._calls.add(call)
        threading.Thread(target=self._serve, args=(call, answered), daemon=True).start()
        try:
            fields, body = client.wait(cast("queue.Queue[Any]", answered))
        except endpoint.Gone:
            call.leave()
            raise
        finally:
            self._calls.discard(call)
        client.begin_answer(fields["status"], fields["type"], len(body))
        client.write_piece(body)

    def _serve(self, call: HttpRequest, answered: queue.SimpleQueue[Any]) -> None:
        """In a thread beside the connection's, which watches whether the client is still there."""
        made = refusal(500, "server_error", "this request could not be answered")
        try:
            made = self._answer(call)
        except Gone:
            made = refusal(410, "trial_ended", "the trial is over")
        finally:
            answered.put(({"status": made.status, "type": made.type}, made.body))


class Server(endpoint.Server):
    """Lets in those who know the token."""

    def __init__(self, desk: TrialServer) -> None:
        self._expected = f"Bearer {desk.token}".encode()
        super().__init__(cast("endpoint.Endpoint", desk))

    def finish_request(self, request: Any, client_address: Any) -> None:
        Handler(request, client_address, self)

    def is_known(self, authorization: str) -> bool:
        return secrets.compare_digest(authorization.encode("utf-8", "replace"), self._expected)


class Handler(endpoint.Handler):
    """One connection."""

    server: Server

    def do_PUT(self) -> None:
        self._handle()

    def do_PATCH(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def _handle(self) -> None:
        if self.server.is_known(self.headers.get("Authorization", "")):
            super()._handle()
        else:
            self._refuse(401, "send the token of this trial as `Authorization: Bearer TOKEN`")
