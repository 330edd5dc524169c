"""What went wrong with a call, from a provider's response or from an exception.

litellm raises different exceptions for the same failure, by provider and by version. So what caused them is
read: the HTTP client's own exception, with the provider's response, or Python's.
"""

import json
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

import httpx

from pytest_super.json_values import loaded, parts_in
from pytest_super.model.completion import KNOWN_CODES, Failure, ModelCallError, classify
from pytest_super.redaction import environment_secrets, redact
from pytest_super.words import shortened

MAX_MESSAGE = 400
CODE_FIELDS = ("code", "type", "status", "reason")
NESTED_FIELDS = ("error", "innererror", "details")
# The address is wrong, or the certificates are: neither changes from one try to the next.
ADDRESS_ERRORS = (ssl.SSLCertVerificationError, httpx.TooManyRedirects)
NETWORK_ERRORS = (OSError, httpx.TransportError)
# Those that say where the request went.
ASKED = (httpx.NetworkError, httpx.ConnectTimeout)
# No connection could be opened: nothing listens, the name is unknown, the handshake or the proxy failed.
UNCONNECTED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, ConnectionRefusedError)
# The answer's bytes are no text, or are compressed wrongly: they were damaged on their way.
DAMAGE = (UnicodeDecodeError, httpx.DecodingError)
# litellm puts it into its messages.
TRACEBACK = "Traceback (most recent call last)"
ERRNO = re.compile(r"^\[Errno -?\d+\] ")
# Statuses from an address without a model API.
NOWHERE_STATUS = (404, 405)
# FastAPI's 404. Many model servers use FastAPI, but their own errors look different.
NOT_FOUND = {"detail": "Not Found"}
STATUS = re.compile("[45][0-9][0-9]")
# The statuses that errors with these codes would have had.
STATUSES = {
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def denied(
    model: str, response: httpx.Response, text: str, secrets: Iterable[str], otherwise: Failure | None = None
) -> ModelCallError:
    """The failure of a call that got an HTTP error with the body `text`; `otherwise` if no code says more."""
    body, status = loaded(text), response.status_code
    failure = classify(status, codes_in(body))
    if "location" in response.headers:
        words = f"{address_of(response)} has moved: check the base URL"
    elif status in NOWHERE_STATUS and is_no_model_api(text):
        words = f"no model API is at {address_of(response)}: check the base URL"
    else:
        words = message_within(body, text)
        words += f" (at {address_of(response)})" if status in NOWHERE_STATUS else ""
    return ModelCallError(
        otherwise if otherwise and failure is Failure.DENIED else failure,
        f"{model} answered {status}: {for_message(words, secrets)}",
        retry_after=retry_after(response.headers),
    )


def failed_within(model: str, data: Any, secrets: Iterable[str]) -> ModelCallError:
    """The failure that an answer itself states, whose response began with HTTP status 200."""
    codes = codes_in(data)
    stated = [int(code) for code in codes if STATUS.fullmatch(code)]
    stated += [status for code, status in STATUSES.items() if code in codes]
    failure = classify(max(stated, default=400 if codes & KNOWN_CODES else 200), codes)
    text = message_within(data, json.dumps(data))
    return ModelCallError(failure, f"{model}: {for_message(text, secrets)}")


def explain(
    error: Exception,
    model: str,
    secrets: Iterable[str] = (),
    *,
    is_sent: bool = True,
    otherwise: Failure | None = None,
) -> ModelCallError:
    """The ModelCallError for one call's exception, without `secrets` and keys of the environment.

    `is_sent` is false if the library failed before it sent anything. `otherwise` is what the exception means
    if neither its causes nor the provider's response say more.
    """
    chain = list(causes(error))
    if (answered := first_of(chain, httpx.HTTPStatusError)) is not None:
        return denied(model, answered.response, answered.response.text, secrets, otherwise)
    failure = meaning(chain, is_sent=is_sent) or otherwise or Failure.UNCLEAR
    text = str(error).partition(TRACEBACK)[0]
    if (asked := first_of(chain, ASKED)) is not None:
        # The innermost reason is the plainest.
        reason = next(filter(None, map(str, reversed(chain))), "no answer")
        text = f"the connection to {address_of(asked)} failed: {ERRNO.sub('', reason)}"
    elif failure is Failure.UNCLEAR:
        text = f"the answer cannot be read: {text}"
    is_unconnected = first_of(chain, UNCONNECTED) is not None
    return ModelCallError(failure, f"{model}: {for_message(text, secrets)}", is_unconnected=is_unconnected)


def meaning(chain: list[BaseException], *, is_sent: bool) -> Failure | None:
    """What an exception without a response means, by its causes; None if these do not say."""
    if first_of(chain, ADDRESS_ERRORS):
        return Failure.DENIED
    # Before `is_sent`, because a connection that cannot be opened fails before anything is sent.
    if first_of(chain, NETWORK_ERRORS):
        return Failure.TRANSIENT
    # A key or a package is missing, or litellm cannot write this one request.
    if not is_sent:
        return Failure.DENIED
    if first_of(chain, DAMAGE):
        return Failure.TRANSIENT
    return Failure.UNCLEAR if first_of(chain, json.JSONDecodeError) else None


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and everything it came from, outermost first."""
    # Causes can form a circle.
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def first_of(chain: list[BaseException], kinds: Any) -> Any:
    return next((error for error in chain if isinstance(error, kinds)), None)


def codes_in(body: Any) -> frozenset[str]:
    """The codes of the errors in a JSON value, in lower case; sentences are not among them."""
    found: set[str] = set()
    for item in parts_in(body, NESTED_FIELDS):
        found.update(str(item[name]).lower() for name in CODE_FIELDS if name in item)
    return frozenset(found)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a response asks to wait; None if it names none that can be read."""
    try:
        seconds = float(headers.get("retry-after") or "")
    except ValueError:
        return None
    # `float` also reads "inf" and "nan".
    return max(0.0, seconds) if isfinite(seconds) else None


def is_no_model_api(text: str) -> bool:
    """Whether a body is something other than an error of a model API, such as a web page."""
    return loaded(text) in (None, NOT_FOUND)


def address_of(holder: Any) -> str:
    """Where the request of a response or of an exception went, without the parts that can contain a key."""
    try:
        return str(holder.request.url.copy_with(query=None, userinfo=b""))
    except Exception:
        # Not every HTTP client keeps the request.
        return "this address"


def message_within(body: Any, text: str) -> str:
    """The message of an error in JSON; the text itself if there is none."""
    error = body.get("error", body) if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) and message else text


def for_message(text: str, secrets: Iterable[str]) -> str:
    """One line without `secrets` and keys of the environment, and not longer than a message should be."""
    text = redact(" ".join(text.split()) or "no reason was given", [*secrets, *environment_secrets()])
    # Last: an earlier cut could leave half of a key, which `redact` would not find.
    return shortened(text, MAX_MESSAGE)
