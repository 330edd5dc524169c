"""Asks a provider in a protocol of its own, without conversion: what the client sent is what it gets.

litellm's own functions for these protocols are not used: they import packages that litellm does not require,
and they drop fields, such as `thinking`, of models that they do not know. litellm prices the answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from pytest_super.model.api import BETA, COUNT_TOKENS
from pytest_super.model.failures import KNOWN_CODES, Failure, ModelCallError, classify
from pytest_super.model.json_values import plain
from pytest_super.model.litellm_errors import codes_in, explain, is_no_model_api, message_within
from pytest_super.model.protocols.protocol import StreamError, named_event
from pytest_super.model.provider import NotSpokenError
from pytest_super.model.redaction import secrets_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pytest_super.model.protocols.protocol import Body, Event, Request, StreamedProtocol, WireProtocol
    from pytest_super.model.provider import Relay

# The one protocol besides chat completions that a provider speaks.
SPOKEN = {"openai": "/v1/responses", "anthropic": "/v1/messages"}
# Events before the first part of an answer, and those that end a stream with an error.
BEFORE = ("response.created", "response.in_progress", "response.queued", "message_start", "ping")
ERRORS = ("error", "response.failed")
# Not `splitlines`: JSON can have other separators as they are.
LINE_END = re.compile(r"\r\n|\n|\r")
BETWEEN = re.compile(r"\r?\n\r?\n")
# Statuses of a server that has no such path.
NO_PATH = (404, 405)
RATE_LIMITED = frozenset({"rate_limit_error", "rate_limit_exceeded"})
LONGEST_MESSAGE = 400
ANTHROPIC_VERSION = "2023-06-01"
# Two events of an answer come this far apart at most, by default: what is silent for longer is dead.
SILENCE_SECONDS = 120.0
LONGEST_STREAM = 3600.0


class BrokenStreamError(ModelCallError):
    """A stream failed after a part of it was relayed, which cannot be taken back."""

    def __init__(self, failure: ModelCallError, events: list[Event]) -> None:
        super().__init__(failure.failure, failure.message, is_final=True)
        self.events = events


class Relaying:
    """Relays the events of one answer, from the first that has a part of it.

    Until then nothing is lost by asking the provider again.
    """

    def __init__(self, relay: Relay | None) -> None:
        self.events: list[Event] = []
        self.has_begun = False
        self._relay = relay

    async def take(self, events: list[Event]) -> None:
        before = len(self.events)
        self.events += [event for event in events if isinstance(event, dict)]
        if self._relay is None:
            return
        if not self.has_begun and all(event.get("type") in (*BEFORE, *ERRORS) for event in self.events):
            return
        waiting = self.events[before:] if self.has_begun else self.events
        self.has_begun = True
        # At once: each piece is a round trip between the sandbox and us.
        await self._relay("".join(named_event(event) for event in waiting if event.get("type") not in ERRORS))


class Upstream:
    """A provider's server, in the protocols that it speaks. Belongs to one event loop."""

    def __init__(
        self, provider: str, model: str, parameters: Mapping[str, Any], silence: float | None
    ) -> None:
        """`model` is its name there. `silence` is an answer's longest, in seconds; None for SILENCE_SECONDS.

        `parameters` are the user's, of which `api_base`, `api_key` and `extra_headers` matter here.
        """
        self.model = f"{provider}/{model}"
        self._provider, self._name = provider, model
        self._parameters = parameters
        # Without a limit on connections: the gateway's rate limiter has one.
        limits = httpx.Limits(max_connections=None)
        self._client = httpx.AsyncClient(timeout=silence or SILENCE_SECONDS, limits=limits)
        self._unspoken: set[str] = set()

    def speaks(self, protocol: WireProtocol) -> bool:
        """Whether the provider does, as far as its name and its answers until now say."""
        return SPOKEN.get(self._provider) == protocol.path and protocol.path not in self._unspoken

    async def ask(
        self, protocol: StreamedProtocol, request: Request, beta: str = "", relay: Relay | None = None
    ) -> Body:
        """The whole answer, whose events have been relayed as they came.

        Raises NotSpokenError, once, and ModelCallError: BrokenStreamError if events were relayed before.
        """
        relaying = Relaying(relay)
        try:
            # A server that sends signs of life for ever would keep its place among the calls.
            async with asyncio.timeout(LONGEST_STREAM), self._stream(protocol, request, beta) as response:
                async for events in events_of(response):
                    await relaying.take(events)
            answer = protocol.whole(relaying.events)
        except (NotSpokenError, ModelCallError):
            raise
        except StreamError as error:
            raise self._final(stream_failure(self.model, error.data), relaying) from None
        except Exception as error:
            failure = explain(error, self.model, secrets_in(self._parameters))
            raise self._final(failure, relaying) from None
        if answer is None:
            failure = ModelCallError(Failure.TRANSIENT, f"{self.model}: the answer broke off")
            raise self._final(failure, relaying)
        return answer

    def _final(self, failure: ModelCallError, relaying: Relaying) -> ModelCallError:
        return BrokenStreamError(failure, relaying.events) if relaying.has_begun else failure

    async def count(self, request: Request, beta: str) -> Body | None:
        """What Anthropic says to `count_tokens`; None if it says nothing that helps."""
        if self._provider != "anthropic":
            return None
        url = self._address(COUNT_TOKENS)
        try:
            response = await self._client.post(url, headers=self._headers(beta), json=self._body(request))
            answer = response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None

    @asynccontextmanager
    async def _stream(
        self, protocol: StreamedProtocol, request: Request, beta: str
    ) -> AsyncIterator[httpx.Response]:
        body = {**self._body(request), "stream": True}
        url = self._address(protocol.path)
        async with self._client.stream("POST", url, headers=self._headers(beta), json=body) as response:
            if response.status_code >= 400:
                await response.aread()
                if response.status_code in NO_PATH and is_no_model_api(response):
                    self._unspoken.add(protocol.path)
                    raise NotSpokenError
                # Its own words, where httpx would put a sentence about the status.
                raise httpx.HTTPStatusError(response.text, request=response.request, response=response)
            yield response

    def _body(self, request: Request) -> Request:
        return {**request, "model": self._name}

    def _address(self, path: str) -> str:
        given = self._parameters.get("api_base") or self._parameters.get("base_url")
        if self._provider == "anthropic":
            base = given or first("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
            return base.rstrip("/").removesuffix("/v1") + path
        base = given or first("OPENAI_BASE_URL", "OPENAI_API_BASE") or "https://api.openai.com/v1"
        return base.rstrip("/") + path.removeprefix("/v1")

    def _headers(self, beta: str) -> dict[str, str]:
        key = self._parameters.get("api_key")
        if self._provider == "anthropic":
            headers = {"anthropic-version": ANTHROPIC_VERSION, "x-api-key": key or first("ANTHROPIC_API_KEY")}
            headers |= {BETA: beta} if beta else {}
        else:
            headers = {"authorization": f"Bearer {key or first('OPENAI_API_KEY')}"}
        return headers | (self._parameters.get("extra_headers") or {})


def first(*names: str) -> str:
    """The value of the first of these environment variables that is set, "" if none is."""
    return next(filter(None, map(os.environ.get, names)), "")


async def events_of(response: httpx.Response) -> AsyncIterator[list[Event]]:
    """The server-sent events of a response, those that came together in one list; comments are left out."""
    unfinished: list[str] = []
    async for text in response.aiter_text():
        # The end of an event can come in two pieces.
        end = unfinished[-1][-3:] if unfinished else ""
        unfinished.append(text)
        if BETWEEN.search(end + text):
            *blocks, rest = BETWEEN.split("".join(unfinished))
            unfinished = [rest]
            yield [event for event in map(event_in, blocks) if event is not None]


def event_in(block: str) -> Event | None:
    """The event of a block of lines; None if it has no data. Raises ValueError if they are not JSON."""
    lines = [line[5:].removeprefix(" ") for line in LINE_END.split(block) if line.startswith("data:")]
    data = "\n".join(lines)
    return None if data in ("", "[DONE]") else plain(json.loads(data))


def stream_failure(model: str, data: Event) -> ModelCallError:
    """What the error in a stream means, whose response began with HTTP status 200."""
    codes = codes_in([data])
    failure = classify(400, codes) if codes & KNOWN_CODES else Failure.TRANSIENT
    if codes & RATE_LIMITED:
        failure = Failure.RATE_LIMITED
    return ModelCallError(failure, f"{model}: {message_within(json.dumps(data))}"[:LONGEST_MESSAGE])
