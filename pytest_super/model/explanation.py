"""What went wrong with a call, from a provider's response or from an exception.

litellm raises different exceptions for the same failure, by provider and by version. So the whole chain of
causes is read: it can contain the HTTP client's own exception, with the provider's response.
"""

from __future__ import annotations

import json
import re
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import TYPE_CHECKING, Any

from pytest_super.model.failures import KNOWN_CODES, UNCONNECTED, Failure, ModelCallError, classify
from pytest_super.model.redaction import environment_secrets, redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

MAX_MESSAGE = 400
CODE_FIELDS = ("code", "type", "status", "reason")
NESTED_FIELDS = ("error", "innererror", "details")
# The exceptions of HTTP clients that have the request whose connection failed.
ASKED = {"APIConnectionError", "NetworkError", "ConnectTimeout"}
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
# What litellm and OpenAI's client put before the provider's words, and after them.
# "Error in …" is a sentence.
PREFIX = re.compile(r"(Error code: \d+ - |[\w.]*(Error|Exception|Timeout)\b(?! in )( ?[:-])?\s*)+")
SUFFIX = re.compile(
    r"(\s*Traceback \(most recent|\s*This looks like a bug in LiteLLM|\. Handle with `).*", re.DOTALL
)


def denied(
    model: str, response: Any, text: str, secrets: Iterable[str], exceptions: Set[str] = frozenset()
) -> ModelCallError:
    """The failure of a call that a provider answered with an HTTP error, whose body is `text`."""
    body, status = loaded(text), response.status_code
    if "location" in response.headers:
        words = f"{address_of(response)} has moved: check the base URL"
    elif status in NOWHERE_STATUS and is_no_model_api(text):
        words = f"no model API is at {address_of(response)}: check the base URL"
    else:
        words = one_line(message_within(text))
    return ModelCallError(
        classify(status, codes_in([body]), exceptions),
        f"{model} answered {status}: {for_message(words, secrets)}",
        retry_after=retry_after(response.headers),
    )


def failed_within(model: str, data: Any, secrets: Iterable[str]) -> ModelCallError:
    """The failure that an answer itself states, whose response began with HTTP status 200."""
    codes = codes_in([data])
    stated = [int(code) for code in codes if STATUS.fullmatch(code)]
    stated += [status for code, status in STATUSES.items() if code in codes]
    failure = classify(max(stated, default=400 if codes & KNOWN_CODES else 200), codes)
    text = one_line(message_within(json.dumps(data)))
    return ModelCallError(failure, f"{model}: {for_message(text, secrets)}")


def explain(
    error: Exception, model: str, secrets: Iterable[str] = (), *, is_sent: bool = True
) -> ModelCallError:
    """The ModelCallError for one call's exception, without `secrets` and keys of the environment."""
    chain = list(causes(error))
    names = frozenset().union(*map(class_names, chain))
    if (response := response_in(chain)) is not None:
        return denied(model, response, response.text, secrets, names)
    failure = classify(None, exceptions=names, is_sent=is_sent)
    text = connection_words(chain) if names & ASKED else own_words(error)
    if failure is Failure.UNCLEAR:
        text = f"the answer cannot be read: {text}"
    return ModelCallError(
        failure, f"{model}: {for_message(text, secrets)}", is_unconnected=bool(names & UNCONNECTED)
    )


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and everything it came from, outermost first."""
    # Causes can form a circle.
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def class_names(error: BaseException) -> frozenset[str]:
    """By name, because the HTTP client is one of several packages whose classes have the same names.

    litellm's exceptions inherit from OpenAI's, which says nothing: those names are left out.
    """
    kinds = type(error).__mro__
    if not is_litellms(kinds[0]):
        return frozenset(kind.__name__ for kind in kinds)
    return frozenset(f"litellm.{kind.__name__}" for kind in kinds if is_litellms(kind))


def is_litellms(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "litellm"


def response_in(chain: list[BaseException]) -> Any:
    """The provider's HTTP response, None if there was none. litellm's exceptions contain made-up ones."""
    return next((error.response for error in chain if has_response(error)), None)  # type: ignore[attr-defined]


def has_response(error: BaseException) -> bool:
    # litellm has a class of its own for the error of its HTTP client.
    is_clients = any(kind.__name__ == "HTTPStatusError" for kind in type(error).__mro__)
    return is_clients or "APIStatusError" in class_names(error)


def loaded(text: str) -> Any:
    """The text as JSON; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def codes_in(bodies: Iterable[Any]) -> frozenset[str]:
    """The codes of the errors in these JSON values, in lower case; sentences are not among them."""
    found: set[str] = set()
    left = list(bodies)
    while left:
        item = left.pop()
        if isinstance(item, list):
            left.extend(item)
        elif isinstance(item, dict):
            found.update(str(item[name]).lower() for name in CODE_FIELDS if name in item)
            left.extend(item.get(name) for name in NESTED_FIELDS)
    return frozenset(found)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a response asks to wait; None if it names none that can be read."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = parse_retry_after(headers.get("retry-after") or "")
    except ValueError:
        return None
    # `float` also reads "inf" and "nan".
    return max(0.0, seconds) if isfinite(seconds) else None


def parse_retry_after(text: str) -> float:
    """Seconds, from a number or from an HTTP date. Raises ValueError."""
    try:
        return float(text)
    except ValueError:
        return parsedate_to_datetime(text).timestamp() - time()


def own_words(error: Exception) -> str:
    """One line for a person, without what litellm puts around the words of others."""
    text = SUFFIX.sub("", str(error)).strip()
    # Only at the beginning: further on, these words are the provider's own.
    text = PREFIX.sub("", text, count=1) if PREFIX.match(text) else text
    return one_line(message_within(text))


def one_line(text: str) -> str:
    return " ".join(text.split()) or "no reason was given"


def connection_words(chain: list[BaseException]) -> str:
    """Where the request went, and the innermost reason why that failed."""
    asked = next((cause for cause in chain if ASKED & class_names(cause)), None)
    reasons = [" ".join(str(cause).split()) for cause in chain]
    reason = ERRNO.sub("", next(filter(None, reversed(reasons)), "no answer"))
    return f"the connection to {address_of(asked)} failed: {reason}"


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


def message_within(text: str) -> str:
    """The message of an error in JSON, which may have text after it; the text itself if there is none."""
    if not text.startswith("{"):
        return text
    try:
        data, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return text
    error = data.get("error", data)
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) and message else text


def for_message(text: str, secrets: Iterable[str]) -> str:
    """The text without `secrets` and keys of the environment, and not longer than a message should be."""
    text = redact(text, [*secrets, *environment_secrets()])
    # Last: an earlier cut could leave half of a key, which `redact` would not find.
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
