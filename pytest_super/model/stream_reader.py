"""The gateway's answers as a worker reads them: whole, or as a stream of events that ends with its facts."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.http_requests import EVENTS
from pytest_super.model.api import COMMENT, FACTS
from pytest_super.model.completion import BudgetSpentError, ModelError
from pytest_super.model.unix_http import HttpResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.model.unix_http import UnixConnection

# Seconds. No trial waits longer for one event.
LONGEST_SILENCE = 3600.0


class StreamReader:
    """Reads the gateway's answer, and relays its events if it is a stream."""

    def __init__(self, relay: Callable[[bytes], None], seconds_left: Callable[[], float]) -> None:
        self.has_begun = False
        self._relay = relay
        self._seconds_left = seconds_left

    def read(self, connection: UnixConnection) -> HttpResponse:
        """The response; of a stream, its body is the last line.

        Raises ModelError if the gateway dies in a stream: what was relayed cannot be asked for again.
        """
        with connection.getresponse() as response:
            if response.headers.get_content_type() != EVENTS:
                return HttpResponse(status=response.status, headers=response.headers, body=response.read())
            self.has_begun = True
            try:
                last = self._relay_events(connection, response)
            except TimeoutError:
                raise BudgetSpentError("wall") from None
            except (http.client.HTTPException, ConnectionError):
                raise ModelError("the model gateway died while it answered") from None
        return HttpResponse(status=200, headers=response.headers, body=last)

    def _relay_events(self, connection: UnixConnection, response: http.client.HTTPResponse) -> bytes:
        event = b""
        while True:
            # No longer than the trial may last; a silent provider ends the stream much earlier.
            connection.limit(max(0.01, min(self._seconds_left(), LONGEST_SILENCE)))
            line = response.readline()
            if line.startswith(COMMENT.encode()):
                return line.removeprefix(COMMENT.encode())
            if not line:
                raise ConnectionError
            event += line
            if not line.strip():
                self._relay(event)
                event = b""


def facts_of(response: HttpResponse) -> dict[str, Any]:
    """The facts of an answer, or its error: of a stream from the last line, which is the body here."""
    text = response.body if response.status != 200 else response.headers.get(FACTS) or response.body
    facts: dict[str, Any] = json.loads(text)
    return facts
