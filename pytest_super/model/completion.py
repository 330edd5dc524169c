"""What an agent gets from a model, and the interface that every model of a trial has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_super.errors import InfrastructureError

Message = Mapping[str, Any]
"""One message as OpenAI's chat completions take it: role, content, …"""


class BudgetSpentError(Exception):
    """The call was not answered, because it would pass a limit: `tokens`, `cost`, `wall` or `context`.

    `context` means that the prompt is longer than the model's window.
    """

    def __init__(self, limit: str, why: str = "") -> None:
        """`why` is for a person, where it is more than that the limit is reached."""
        super().__init__(why or f"the trial's {limit} budget is spent")
        self.limit = limit
        self.why = why


class FilteredError(Exception):
    """The provider's content policy refused the prompt; the agent can continue with another prompt."""


class ModelError(InfrastructureError):
    """The model gave no answer after all retries; the message says why.

    `is_final` is true when the key, the account or the model's name is wrong: every later call would fail.
    """


class RunCostError(ModelError):
    """The run has reached its limit of cost. It ends the run, but nothing failed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, is_final=True)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What one call or several calls of a model used."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompt tokens: read from the provider's cache, which costs less."""
    cost_usd: float | None = None
    """The sum over the calls whose price is known; None if no price is known."""
    recorded: int = 0
    """How many of the answers come from another run; they are paid already."""
    recorded_usd: float = 0.0
    """Of the cost: that of recorded answers."""
    asked: int = 0
    """How many of the answers are the provider's own."""

    def __add__(self, other: Usage) -> Usage:
        costs = [usage.cost_usd for usage in (self, other) if usage.cost_usd is not None]
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(costs) if costs else None,
            recorded=self.recorded + other.recorded,
            recorded_usd=self.recorded_usd + other.recorded_usd,
            asked=self.asked + other.asked,
        )

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Usage:
        """The usage among the fields of a JSON object, the inverse of `dataclasses.asdict`."""
        return cls(
            prompt_tokens=data["prompt_tokens"],
            completion_tokens=data["completion_tokens"],
            cached_tokens=data.get("cached_tokens", 0),
            cost_usd=data["cost_usd"],
            recorded=data.get("recorded", 0),
            recorded_usd=data.get("recorded_usd", 0.0),
            asked=data.get("asked", 0),
        )


NO_USAGE = Usage()


@dataclass(frozen=True, kw_only=True)
class Completion:
    """One answer of a model."""

    text: str
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    """In the form of OpenAI's chat completions."""
    finish_reason: str = "stop"
    """`stop`, `length` (cut off: do not execute it), `tool_calls`, `content_filter`, …"""
    usage: Usage = NO_USAGE
    model: str = ""
    """The name under which the provider served it."""
    seconds: float = 0.0
    """From the request to the answer, retries included."""


class Model(Protocol):
    """What a trial asks."""

    def complete(self, messages: Sequence[Message], **parameters: Any) -> Completion:
        """The answer to a chat completion. Raises BudgetSpentError, FilteredError, ModelError."""
