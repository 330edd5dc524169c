"""What a failed model call means: for the call, for its trial and for the run.

docs/models.md has the table: which calls are retried, which trials are errors, which runs stop.

Only the HTTP status, the provider's codes and the classes of exceptions decide. The provider's sentences do
not: they change with every version, and they can quote the prompt, which an agent or a sandbox wrote. litellm
chooses two of its exception classes by such sentences. These can end a trial, but never the run.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_super.model.completion import NO_USAGE, BudgetSpentError, Usage

if TYPE_CHECKING:
    from collections.abc import Set


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
CONTEXT_EXCEPTION = "litellm.ContextWindowExceededError"
REQUEST_EXCEPTION = "litellm.BadRequestError"
FILTER_EXCEPTION = "litellm.ContentPolicyViolationError"
# Time-out, conflict and "too early": the request itself is acceptable.
TRANSIENT_STATUS = (408, 409, 425)
# Unlike 403 and 404, which moderation and routers also send for single requests.
ACCOUNT_STATUS = (401, 402)
# Every HTTP client has classes of its own, not all of them based on OSError. litellm's own are left out,
# because it raises its APIConnectionError for whatever it does not know.
NETWORK_EXCEPTION = re.compile(r"OSError$|(?!litellm\.).*(Connect|Timeout|Transport|Proxy)")
# No connection could be opened: nothing listens, the name is unknown, the handshake or the proxy failed.
UNCONNECTED = frozenset(
    {"ConnectError", "ConnectTimeout", "ProxyError", "EndpointConnectionError", "ConnectionRefusedError"}
)
# The address is wrong, or the certificates are: neither changes from one try to the next.
ADDRESS_EXCEPTIONS = frozenset({"SSLCertVerificationError", "TooManyRedirects"})
# The answer's bytes are no text, or are compressed wrongly: they were damaged on their way.
DAMAGE_EXCEPTIONS = frozenset({"UnicodeDecodeError", "DecodingError"})


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


def classify(
    status: int | None,
    codes: Set[str] = frozenset(),
    exceptions: Set[str] = frozenset(),
    *,
    is_sent: bool = True,
) -> Failure:
    """The meaning of a failed call; the module's docstring has the policy.

    `status` is the provider's own HTTP status, None if no response arrived. `codes` are the codes in the
    response, in lower case. `exceptions` are the names of all classes of the exception and of its causes,
    litellm's with the prefix `litellm.`. `is_sent` is false if the library failed before it sent anything.
    """
    if status is None:
        return classify_unanswered(exceptions, is_sent=is_sent)
    if status >= 500 or status in TRANSIENT_STATUS:
        return Failure.TRANSIENT
    # Before 429, with which providers also refuse an account without credit.
    if codes & FATAL_CODES:
        return Failure.FATAL
    if status == 429:
        return Failure.RATE_LIMITED
    if status == 413 or codes & CONTEXT_CODES or CONTEXT_EXCEPTION in exceptions:
        return Failure.CONTEXT
    if codes & FILTER_CODES or FILTER_EXCEPTION in exceptions:
        return Failure.FILTERED
    if status in ACCOUNT_STATUS:
        return Failure.FATAL
    # Below 400 the provider did answer, but the answer could not be read.
    return Failure.DENIED if status >= 400 else Failure.UNCLEAR


def classify_unanswered(exceptions: Set[str], *, is_sent: bool) -> Failure:
    # Before the others: a client wraps it in an exception of its own, such as APIConnectionError.
    if exceptions & ADDRESS_EXCEPTIONS:
        return Failure.DENIED
    # Before `is_sent`, because a connection that cannot be opened fails before anything is sent.
    if any(map(NETWORK_EXCEPTION.match, exceptions)):
        return Failure.TRANSIENT
    if is_sent and exceptions & DAMAGE_EXCEPTIONS:
        return Failure.TRANSIENT
    # litellm calls it a bad request in some protocols.
    if is_sent and "JSONDecodeError" in exceptions:
        return Failure.UNCLEAR
    if CONTEXT_EXCEPTION in exceptions:
        return Failure.CONTEXT
    # A key or a package is missing, or litellm cannot write this one request.
    is_unwritten = not is_sent or REQUEST_EXCEPTION in exceptions
    return Failure.DENIED if is_unwritten else Failure.UNCLEAR
