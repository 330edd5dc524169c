"""What a failed model call means: for the call, for its trial and for the run.

docs/reference/models.md has the table: which calls are retried, which trials are errors, which runs stop.

Only the HTTP status, the provider's codes and the classes of exceptions decide. The provider's sentences do
not: they change with every version, and they can quote the prompt, which an agent or a sandbox wrote.
"""

from collections.abc import Iterator, Set
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from pytest_super.model.completion import NO_USAGE, BudgetSpentError, Usage


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
