"""What a model's answer is to the gateway and to an agent, and what it means for a call to have none.

docs/reference/models.md has the table: which calls are retried, which trials are errors, which runs stop.

Only the HTTP status, the provider's codes and the classes of exceptions decide. The provider's sentences do
not: they change with every version, and they can quote the prompt, which an agent or a sandbox wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
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
    provided: int = 0
    """How many of the answers the provider gave in this run."""

    def __add__(self, other: Usage) -> Usage:
        costs = [usage.cost_usd for usage in (self, other) if usage.cost_usd is not None]
        sums = {name: mine + getattr(other, name) for name, mine in vars(self).items() if name != "cost_usd"}
        return Usage(**sums, cost_usd=sum(costs) if costs else None)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Usage:
        """The usage among the fields of a JSON object, the inverse of `dataclasses.asdict`."""
        return cls(**{field.name: data[field.name] for field in fields(cls) if field.name in data})


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


# In the gateway

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


class Failure(StrEnum):
    """Why a call has no answer; the values are the codes in the gateway's HTTP errors."""

    TRANSIENT = "transient"
    """The provider or the network failed."""
    RATE_LIMITED = "rate_limited"
    """Too many calls or tokens in a minute: all other calls wait as well."""
    UNCLEAR = "unclear"
    """Nothing says what went wrong; often an answer that cannot be read. Retried once."""
    DENIED = "denied"
    """Either this request cannot succeed, or no request can: a harmless question shows which."""
    FATAL = "fatal"
    """The key, the account or the model's name is wrong: every further call fails in the same way."""
    CONTEXT = "context"
    """The prompt is longer than the model's window."""
    FILTERED = "filtered"
    """The provider's content policy."""
    REFUSED = "refused"
    """The provider does not accept this one request."""
    RUN_COST = "run_cost"
    """The run has reached its limit of cost: no call was made, and nothing failed."""
    INVALID = "invalid_request"
    """The request is malformed, by the agent's own mistake; no provider has seen it."""


RETRIED = frozenset({Failure.TRANSIENT, Failure.RATE_LIMITED, Failure.UNCLEAR})
# Values of `code`, `type`, `status` or `reason` in an error's JSON, in lower case.
FATAL_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
        "invalid_api_key",
        "api_key_invalid",
        "model_not_found",
        "deploymentnotfound",
        "unsupported_country",
        "unsupported_country_region_territory",
    }
)
CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
FILTER_CODES = frozenset({"content_policy_violation", "content_filter", "responsibleaipolicyviolation"})
KNOWN_CODES = FATAL_CODES | CONTEXT_CODES | FILTER_CODES
# Time-out, conflict and "too early": the request itself is acceptable.
TRANSIENT_STATUS = (408, 409, 425)
# Unlike 403 and 404, which moderation and routers also send for single requests.
ACCOUNT_STATUS = (401, 402)


class ModelCallError(Exception):
    """A call has no answer. `message` is one line for a person and contains no key.

    `retry_after` is in seconds; `usage` is what the failed call used. `is_final` means that the call must not
    be retried; by default `failure` decides. `is_unconnected` means that no connection could be opened.
    """

    def __init__(
        self,
        failure: Failure,
        message: str,
        *,
        retry_after: float | None = None,
        is_final: bool | None = None,
        usage: Usage = NO_USAGE,
        is_unconnected: bool = False,
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message
        self.retry_after = retry_after
        self.is_final = failure not in RETRIED if is_final is None else is_final
        self.usage = usage
        self.is_unconnected = is_unconnected


def error_data(error: BudgetSpentError | ModelCallError) -> dict[str, str]:
    """The error as OpenAI's JSON states it, with our own codes."""
    if isinstance(error, BudgetSpentError):
        why = {"why": error.why} if error.why else {}
        return {"message": str(error), "type": "pytest_super", "code": f"budget_{error.limit}", **why}
    return {"message": error.message, "type": "pytest_super", "code": error.failure}


def classify(status: int, codes: Set[str] = frozenset()) -> Failure:
    """The meaning of a response with this HTTP status and these codes of errors, in lower case."""
    if status >= 500 or status in TRANSIENT_STATUS:
        return Failure.TRANSIENT
    # Before 429, with which providers also refuse an account without credit.
    if codes & FATAL_CODES:
        return Failure.FATAL
    if status == 429:
        return Failure.RATE_LIMITED
    if status == 413 or codes & CONTEXT_CODES:
        return Failure.CONTEXT
    if codes & FILTER_CODES:
        return Failure.FILTERED
    if status in ACCOUNT_STATUS:
        return Failure.FATAL
    # Below 400 the provider did answer, but the answer could not be read.
    return Failure.DENIED if status >= 400 else Failure.UNCLEAR


@contextmanager
def disk_errors(path: str | Path) -> Iterator[None]:
    """Turns an OSError from writing a run's file into a failure that ends the run."""
    try:
        yield
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror}: make room, or name another folder by --super-dir"
        raise ModelCallError(Failure.FATAL, text) from None
