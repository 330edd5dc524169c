"""The interface behind the gateway's calls, which litellm and scripts implement."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from pytest_super.model.completion import Usage
from pytest_super.model.protocols.protocol import Event, Request, WireProtocol
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage

Relay = Callable[[list[Event]], Awaitable[None]]
"""Passes events of a stream on to the client."""

# A provider chooses its model's name, which is in each result.
MAX_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a model said, and what the call used.

    A program gets the body as it is. The client of our own agents makes a Completion of the body and the
    `facts`.
    """

    body: dict[str, Any]
    """In plain JSON values: OpenAI's `chat.completion` with at least one choice, or what the request's own
    protocol has in its place."""
    is_chat: bool = True
    """Whether the body is the former."""
    usage: Usage
    is_counted: bool
    """Whether the tokens were estimated on this machine, because the provider reported no plausible usage."""
    model: str
    """The name under which the provider served it."""
    fingerprint: str | None
    attempts: int = 1
    """How often the provider was asked."""
    started: str = ""
    seconds: float = 0.0

    def facts(self) -> dict[str, Any]:
        """Everything except the body, as the fields of one flat JSON object."""
        return {
            "started": self.started,
            "seconds": round(self.seconds, 3),
            **asdict(self.usage),
            "is_counted": self.is_counted,
            "model": self.model[:MAX_NAME],
            "fingerprint": self.fingerprint and str(self.fingerprint)[:MAX_NAME],
            "attempts": self.attempts,
        }


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
