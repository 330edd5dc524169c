"""The interface behind the gateway's calls, which litellm and scripts implement."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pytest_super.model.completion import Answer
from pytest_super.model.protocols.protocol import Event, Request, WireProtocol
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage

Relay = Callable[[list[Event]], Awaitable[None]]
"""Passes events of a stream on to the client."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks: a request in plain JSON values, with the user's parameters."""

    protocol: WireProtocol
    request: Request
    """In the client's protocol."""
    chat: Request
    """The same as a chat completion."""
    task: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those of the client that the protocol's own provider gets."""
    relay: Relay | None = None
    """Gets the events of the answer, if the client wants a stream and the provider speaks its protocol."""


class ModelProvider(Protocol):
    takes_seed: bool
    """Whether a request's `seed` makes a difference."""

    def max_usage(self, request: Request) -> MaxUsage:
        """The most that one call with this request can use."""

    async def ask(self, asked: Asked, call: int) -> Answer:
        """One answer, without a retry; `call` is its number within its trial. Raises ModelCallError."""


class NoModel(ModelProvider):
    """Stands for the model where a run gets every answer from another one."""

    takes_seed = False

    def max_usage(self, request: Request) -> MaxUsage:  # noqa: ARG002
        return UNBOUNDED

    async def ask(self, asked: Asked, call: int) -> Answer:  # noqa: ARG002
        raise AssertionError("a call that is not recorded has failed before")
