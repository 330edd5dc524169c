"""What a program gets from the model door: replies, refusals, and streams whose end can be withheld."""

import json
from typing import Any

from pytest_super.kernel.http_requests import HttpRequest, Reply
from pytest_super.model.protocols.protocol import WireProtocol, plain_error

# The end of each event.
BETWEEN = b"\n\n"


class RefusedError(Exception):
    """The request is at fault, and the program may send another; `code` is one of OpenAI's API."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class HeldStream:
    """Relays events, and holds the newest until the answer is charged: without it none is whole."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._held = b""

    @property
    def has_begun(self) -> bool:
        return bool(self._held)

    def send(self, events: bytes) -> None:
        ready, end, last = (self._held + events).removesuffix(BETWEEN).rpartition(BETWEEN)
        self._held = last + BETWEEN
        if ready:
            self._request.relay(ready + end)

    def end(self) -> bool:
        """Send the last event. Whether there was a stream."""
        if self._held:
            self._request.relay(self._held)
        return bool(self._held)

    def refuse(self, protocol: WireProtocol, status: int, code: str, message: str) -> Reply | None:
        """End the stream by an error, or reply with it if no stream has begun."""
        if not self._held:
            return reply(protocol.error(status, code, message), status)
        self._request.relay(protocol.error_event(code, message).encode())
        return None


def reply(value: dict[str, Any], status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(value).encode())


def refusal(status: int, code: str, message: str) -> Reply:
    return reply(plain_error(code, message), status)
