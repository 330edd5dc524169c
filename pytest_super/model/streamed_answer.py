"""Reads an answer that comes as a stream of server-sent events, and relays them meanwhile.

Source: https://html.spec.whatwg.org/#server-sent-events
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, suppress

import httpx

from pytest_super.json_values import plain
from pytest_super.model.completion import Failure, ModelCallError
from pytest_super.model.explanation import explain, failed_within
from pytest_super.model.protocols.protocol import END_MARK, Body, Event, StreamError, WireProtocol
from pytest_super.model.provider import Relay

Source = AbstractAsyncContextManager[AsyncIterator[list[Event]]]
"""The events of one answer, those that came together in one list."""

# Two events of an answer come this far apart at most, by default: what is silent for longer is dead. Before
# the first part of an answer, models think, and many send nothing meanwhile.
SILENCE_SECONDS = 120.0
FIRST_PART_SECONDS = 600.0
LONGEST_STREAM = 3600.0
SILENT = "no part of an answer for {:g} s, which --super-model-arg=timeout=SECONDS changes"
ENDLESS = f"no end of the answer within {LONGEST_STREAM:g} s"
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


class NotSpokenError(Exception):
    """The provider's server does not know this protocol."""


class BrokenStreamError(ModelCallError):
    """A stream failed after a part of the answer had come, which the provider charges for."""

    def __init__(self, failure: ModelCallError, events: list[Event], *, is_relayed: bool) -> None:
        # What was relayed cannot be taken back.
        is_final = failure.is_final or is_relayed
        # Whoever begins to answer does not deny every call.
        kind = Failure.REFUSED if failure.failure is Failure.DENIED else failure.failure
        super().__init__(kind, failure.message, retry_after=failure.retry_after, is_final=is_final)
        self.events = events


class Relaying:
    """Relays the events of one answer from the first part of it on. Until then it can be asked for again."""

    def __init__(self, protocol: WireProtocol, relay: Relay | None) -> None:
        self.protocol = protocol
        self.events: list[Event] = []
        self.has_part = False
        """Whether a part of the answer has come."""
        self._relay = relay

    async def take(self, events: list[Event]) -> None:
        new = [event for event in events if isinstance(event, dict)]
        self.events += new
        if not self.has_part:
            if not any(self.protocol.has_part(event) for event in new if event != END_MARK):
                return
            self.has_part, new = True, self.events
        if self._relay is not None:
            # At once: each piece is a round trip between the sandbox and us.
            await self._relay([event for event in new if event != END_MARK])

    def failed(self, failure: ModelCallError) -> ModelCallError:
        """The failure of this answer."""
        if not self.has_part:
            return failure
        return BrokenStreamError(failure, self.events, is_relayed=self._relay is not None)

    def patience(self, silence: float | None) -> float:
        """How long the answer can be silent now, in seconds; None for what is usual."""
        if silence is not None:
            return silence
        return SILENCE_SECONDS if self.has_part else FIRST_PART_SECONDS


async def read_answer(
    source: Source, relaying: Relaying, *, model: str, silence: float | None, secrets: Iterable[str]
) -> Body:
    """The whole answer, whose events have been relayed as they came. `model` is for messages.

    `silence` is the longest one: see Relaying.patience. Comments break it: servers send them while a model
    thinks. Raises NotSpokenError, and ModelCallError: BrokenStreamError if a part of the answer had come.
    """
    clock = asyncio.get_running_loop().time
    latest = clock() + LONGEST_STREAM
    limit = asyncio.timeout(relaying.patience(silence))
    failure = ModelCallError(Failure.TRANSIENT, f"{model}: the answer broke off")
    try:
        async with limit, source as pieces:
            async for events in pieces:
                await relaying.take(events)
                # A server that sends signs of life for ever would keep its place among the calls.
                limit.reschedule(min(clock() + relaying.patience(silence), latest))
    except (NotSpokenError, ModelCallError):
        raise
    except Exception as error:
        failure = explain(error, model, secrets)
    if limit.expired():
        text = SILENT.format(relaying.patience(silence)) if clock() < latest else ENDLESS
        failure = ModelCallError(Failure.TRANSIENT, f"{model}: {text}")
    try:
        # Whatever became of the connection: after its end, an answer is whole, and paid.
        if (answer := relaying.protocol.whole(relaying.events)) is not None:
            return answer
    except StreamError as error:
        failure = failed_within(model, error.data, secrets)
    except Exception as error:
        failure = explain(error, model, secrets)
    # Outside of the handlers: a traceback would show the secrets that `explain` removes.
    raise relaying.failed(failure)


# The events of a response


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
