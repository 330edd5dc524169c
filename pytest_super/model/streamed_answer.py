"""Reads an answer that comes as a stream of server-sent events, and relays them meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pytest_super.model.explanation import explain, failed_within
from pytest_super.model.failures import Failure, ModelCallError
from pytest_super.model.protocols.protocol import END_MARK, StreamError
from pytest_super.model.provider import NotSpokenError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from contextlib import AbstractAsyncContextManager

    from pytest_super.model.protocols.protocol import Body, Event, WireProtocol
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
    """Relays the events of one answer, from the first that has a part of it.

    Until then nothing is lost by asking the provider again.
    """

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
