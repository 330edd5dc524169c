"""The gateway's answers as a worker reads them: whole, or as a stream of events that ends with its facts."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.http_requests import EVENTS
from pytest_super.model.api import COMMENT, FACTS, TWO_LINES
from pytest_super.model.completion import BudgetSpentError, ModelError
from pytest_super.model.unix_http import HttpResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.model.unix_http import UnixConnection

# Seconds. No trial waits longer for one event.
LONGEST_SILENCE = 3600.0
PIECE = 256 * 2**10
# The end of each event.
BETWEEN = b"\n\n"


class StreamReader:
    """Reads the gateway's answer, and relays its events if it is a stream."""

    def __init__(self, relay: Callable[[bytes], None], seconds_left: Callable[[], float]) -> None:
        self._relay = relay
        self._seconds_left = seconds_left

    def read(self, connection: UnixConnection) -> HttpResponse:
        """The response; of a stream, its body is the last line.

        Raises ModelError if the gateway dies in a stream: what was relayed cannot be asked for again.
        """
        with connection.getresponse() as response:
            if response.headers.get_content_type() != EVENTS:
                return HttpResponse(status=response.status, headers=response.headers, body=response.read())
            try:
                last = self._relay_events(connection, response)
            except TimeoutError:
                raise BudgetSpentError("wall") from None
            except (http.client.HTTPException, ConnectionError):
                raise ModelError("the model gateway died while it answered") from None
        return HttpResponse(status=200, headers=response.headers, body=last)

    def _relay_events(self, connection: UnixConnection, response: http.client.HTTPResponse) -> bytes:
        """Relay the events, those that came together at once. Returns the last line without its mark."""
        data = bytearray()
        while True:
            # No longer than the trial may last; a silent provider ends the stream much earlier.
            connection.limit(max(0.01, min(self._seconds_left(), LONGEST_SILENCE)))
            piece = response.read1(PIECE)
            if not piece:
                raise ConnectionError
            data += piece
            if BETWEEN not in data[-len(piece) - 1 :]:
                continue
            whole, _, rest = data.rpartition(BETWEEN)
            before, _, last = whole.rpartition(BETWEEN)
            is_end = last.startswith(COMMENT.encode())
            if events := before if is_end else whole:
                self._relay(bytes(events + BETWEEN))
            if is_end:
                return bytes(last.removeprefix(COMMENT.encode()))
            data = rest


def body_and_facts(response: HttpResponse) -> tuple[bytes, dict[str, Any]]:
    """The model's answer, and what is said of it, or its error. The answer of a stream has been relayed."""
    if response.status == 200 and FACTS in response.headers:
        return response.body, json.loads(response.headers[FACTS])
    if response.headers.get_content_type() == TWO_LINES:
        body, _, facts = response.body.partition(b"\n")
        return body, json.loads(facts)
    return b"", json.loads(response.body)
