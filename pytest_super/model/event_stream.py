"""The gateway's responses that are streams of events."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from aiohttp import web

from pytest_super.kernel.http_requests import EVENTS
from pytest_super.model.api import COMMENT

# The end of the events.
END = ""
# Events that come within this time go on together. Each piece takes two milliseconds of processor time on its
# way into a sandbox, and models send up to a hundred events a second.
GATHER_SECONDS = 0.1


class EventStream:
    """The response to a request for a stream, which begins with its first event.

    A task of its own writes it: a client that does not read must not hold the place of its call among those
    that run at once.
    """

    def __init__(self, http: web.Request) -> None:
        self._http = http
        self._events: asyncio.Queue[str] = asyncio.Queue()
        self._writer: asyncio.Task[web.StreamResponse] | None = None
        self._is_abandoned = False
        self._is_complete = asyncio.Event()

    @property
    def has_begun(self) -> bool:
        return self._writer is not None

    async def relay(self, events: str) -> None:
        """Send events, soon. Does nothing when the client has left: its answer is booked all the same."""
        if self._is_abandoned or not events:
            return
        self._events.put_nowait(events)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())

    async def end(self, facts: dict[str, Any]) -> web.StreamResponse:
        """Send the last line, and wait until all is written. Only for a stream that has begun."""
        assert self._writer is not None
        self._events.put_nowait(f"{COMMENT}{json.dumps(facts)}\n\n")
        self._events.put_nowait(END)
        self._is_complete.set()
        return await self._writer

    def abandon(self) -> None:
        """Relay nothing more."""
        self._is_abandoned = True
        if self._writer is not None:
            self._writer.cancel()

    async def _write(self) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": EVENTS})
        with suppress(ConnectionError):
            await response.prepare(self._http)
            gathered = ""
            while (events := await self._events.get()) != END:
                gathered += events
                if self._events.empty():
                    await response.write(gathered.encode())
                    gathered = ""
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._is_complete.wait(), GATHER_SECONDS)
            await response.write(gathered.encode())
        return response
