"""Reads an answer that comes as a stream of server-sent events, and relays them meanwhile."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx

from pytest_super.model.failures import KNOWN_CODES, Failure, ModelCallError, classify
from pytest_super.model.json_values import plain
from pytest_super.model.litellm_errors import codes_in, cut, explain, message_within
from pytest_super.model.protocols.protocol import END_MARK, StreamError
from pytest_super.model.provider import NotSpokenError
from pytest_super.model.redaction import environment_secrets, redact

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from contextlib import AbstractAsyncContextManager

    from pytest_super.model.protocols.protocol import Body, Event, StreamedProtocol
    from pytest_super.model.provider import Relay

    Source = AbstractAsyncContextManager[AsyncIterator[list[Event]]]
    """The events of one answer, those that came together in one list."""

# Not `splitlines`: JSON can have other separators as they are.
LINE_END = re.compile(r"\r\n|\n|\r")
BETWEEN = re.compile(r"\r?\n\r?\n")
# A line of an event, or a comment.
FIELD = re.compile(r"(data|event|id|retry)?:")
# The begin of JSON or of a web page.
DOCUMENT = re.compile(r"\s*[\[{<]")
STATUS = re.compile("[45][0-9][0-9]")
# The statuses that errors with these codes would have had.
STATUSES = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "api_error": 500,
    "overloaded_error": 529,
}
# Two events of an answer come this far apart at most, by default: what is silent for longer is dead. Before
# the first part of an answer, models think, and many send nothing meanwhile.
SILENCE_SECONDS = 120.0
FIRST_PART_SECONDS = 600.0
LONGEST_STREAM = 3600.0
# What remains of a response after the mark of its end, before its connection can be used again.
REST_SECONDS = 1.0
SILENT = "no part of an answer for {:g} s, which --super-model-arg=timeout=SECONDS changes"
ENDLESS = f"no end of the answer within {LONGEST_STREAM:g} s"


class BrokenStreamError(ModelCallError):
    """A stream failed after a part of the answer had come, which the provider charges for."""

    def __init__(self, failure: ModelCallError, events: list[Event], *, is_relayed: bool) -> None:
        # What was relayed cannot be taken back.
        is_final = failure.is_final or is_relayed
        super().__init__(failure.failure, failure.message, retry_after=failure.retry_after, is_final=is_final)
        self.events = events


class Relaying:
    """Relays the events of one answer, from the first that has a part of it.

    Until then nothing is lost by asking the provider again.
    """

    def __init__(self, protocol: StreamedProtocol, relay: Relay | None) -> None:
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
        failure = stream_failure(model, error.data, secrets)
    except Exception as error:
        failure = explain(error, model, secrets)
    # Outside of the handlers: a traceback would show the secrets that `explain` removes.
    raise relaying.failed(failure)


async def denial(response: httpx.Response) -> httpx.HTTPStatusError:
    """The error of a response without an answer, in its own words, where httpx would put a sentence."""
    await response.aread()
    return httpx.HTTPStatusError(response.text, request=response.request, response=response)


async def events_of(response: httpx.Response) -> AsyncIterator[list[Event]]:
    """The server-sent events of a response, those that came together in one list; comments are left out.

    A server that cannot stream answers with one JSON value, which is then the only event. Raises ValueError
    if the response is neither.
    """
    decode = codecs.getincrementaldecoder("utf-8")().decode
    unfinished: list[str] = []
    end, are_events, is_document = "", False, False
    pieces = response.aiter_bytes()
    async for piece in pieces:
        text = end + decode(piece)
        unfinished.append(text[len(end) :])
        # The end of an event can come in several pieces.
        end, is_between = text[-3:], BETWEEN.search(text)
        if is_document or not is_between:
            continue
        *blocks, rest = BETWEEN.split("".join(unfinished))
        # Documents have blank lines, too.
        is_document = not are_events and any(map(DOCUMENT.match, blocks))
        if is_document:
            continue
        # Some servers send blank lines before an answer.
        are_events = are_events or any(map(str.strip, blocks))
        unfinished = [rest]
        events = [event for event in map(event_in, blocks) if event is not None]
        yield events
        if END_MARK in events:
            await finish(pieces)
            return
    rest = "".join(unfinished)
    if are_events or FIELD.match(rest):
        yield last_events(rest)
    elif rest.strip():
        yield [plain(json.loads(rest))]


def last_events(rest: str) -> list[Event]:
    """What comes without a blank line after it is an event or a part of one."""
    with suppress(ValueError):
        return [event for event in [event_in(rest)] if event is not None]
    return []


async def finish(pieces: AsyncIterator[bytes]) -> None:
    """Read what is left, so that the connection can be used again; some servers leave it open."""
    with suppress(TimeoutError):
        async with asyncio.timeout(REST_SECONDS):
            async for _ in pieces:
                pass


def event_in(block: str) -> Event | None:
    """The event of a block of lines; None if it has no data. Raises ValueError if they are not JSON."""
    lines = [line[5:].removeprefix(" ") for line in LINE_END.split(block) if line.startswith("data:")]
    data = "\n".join(lines)
    if data == "[DONE]":
        return END_MARK
    return plain(json.loads(data)) if data else None


def stream_failure(model: str, data: Any, secrets: Iterable[str]) -> ModelCallError:
    """What the error in a stream means, whose response began with HTTP status 200."""
    codes = codes_in([data])
    stated = [int(code) for code in codes if STATUS.fullmatch(code)]
    stated += [status for code, status in STATUSES.items() if code in codes]
    failure = classify(max(stated, default=400 if codes & KNOWN_CODES else 200), codes)
    text = " ".join(message_within(json.dumps(data)).split())
    return ModelCallError(failure, f"{model}: {cut(redact(text, [*secrets, *environment_secrets()]))}")
