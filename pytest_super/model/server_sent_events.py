"""The server-sent events of an HTTP response. Source: https://html.spec.whatwg.org/#server-sent-events"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx

from pytest_super.json_values import plain
from pytest_super.model.protocols.protocol import END_MARK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pytest_super.model.protocols.protocol import Event

# Not `splitlines`: JSON can have other separators as they are.
LINE_END = re.compile(r"\r\n|\n|\r")
BETWEEN = re.compile(r"\r?\n\r?\n")
# How JSON and web pages begin.
DOCUMENTS = ("[", "{", "<")
# What remains of a response after the mark of its end, before its connection can be used again.
REST_SECONDS = 1.0
MEBIBYTE = 2**20
# The longest answers of models have less than 1 MiB; probabilities of each token make them larger. One
# without end would fill the machine's memory.
LARGEST_ANSWER = 64 * MEBIBYTE


async def events_of(response: httpx.Response) -> AsyncIterator[list[Event]]:
    """The events, those that came together in one list; comments are left out.

    A server that cannot stream answers with one JSON value, which is then the only event. Raises ValueError
    for a web page.
    """
    parser = EventParser()
    pieces = limited_bytes(response)
    async for piece in pieces:
        if (events := parser.feed(piece)) is None:
            continue
        yield events
        if END_MARK in events:
            await finish(pieces)
            return
    yield parser.end()


async def limited_bytes(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body, after decompression. Raises RemoteProtocolError if it is too large."""
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > LARGEST_ANSWER:
            text = f"the answer is larger than {LARGEST_ANSWER // MEBIBYTE} MiB"
            raise httpx.RemoteProtocolError(text, request=response.request)
        yield piece


class EventParser:
    """Finds the events of one response, however its bytes come."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._unfinished: list[str] = []
        self._last = self._begin = ""

    def feed(self, piece: bytes) -> list[Event] | None:
        """The events that end in this piece; None if nothing does, not even a comment."""
        text = self._decode(piece)
        self._unfinished.append(text)
        # Some servers send blank lines before an answer.
        self._begin = self._begin or text.lstrip()[:1]
        # The end of an event can come in several pieces.
        text = self._last + text
        self._last = text[-3:]
        if self._begin in DOCUMENTS or not BETWEEN.search(text):
            return None
        *blocks, rest = BETWEEN.split("".join(self._unfinished))
        self._unfinished = [rest]
        return events_in(blocks)

    def end(self) -> list[Event]:
        """What the response had after its last event. Raises ValueError for a document that is not JSON."""
        rest = "".join(self._unfinished)
        if self._begin in DOCUMENTS:
            return [plain(json.loads(rest))]
        # Without a blank line after it, it is an event or a part of one.
        with suppress(ValueError):
            return events_in([rest])
        return []


def events_in(blocks: list[str]) -> list[Event]:
    """The events of blocks of lines, without those that have no data. Raises ValueError."""
    return [event for event in map(event_in, blocks) if event is not None]


def event_in(block: str) -> Event | None:
    """The event of a block of lines; None if it has no data. Raises ValueError if they are not JSON."""
    lines = [line[5:].removeprefix(" ") for line in LINE_END.split(block) if line.startswith("data:")]
    data = "\n".join(lines)
    if data == "[DONE]":
        return END_MARK
    return plain(json.loads(data)) if data else None


async def finish(pieces: AsyncIterator[bytes]) -> None:
    """Read what is left, so that the connection can be used again; some servers leave it open."""
    with suppress(TimeoutError):
        async with asyncio.timeout(REST_SECONDS):
            async for _ in pieces:
                pass
