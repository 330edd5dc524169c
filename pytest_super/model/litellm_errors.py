"""Converts exceptions of litellm to ModelCallErrors.

litellm raises different exceptions for the same failure, by provider and by version. So the whole chain of
causes is read: it contains the HTTP client's own exception, with the provider's response.
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
    from collections.abc import Iterable, Iterator

MAX_MESSAGE = 400
NO_CODE = 422
CODE_FIELDS = ("code", "type", "status", "reason")
NESTED_FIELDS = ("error", "innererror", "details")
# All that OpenAI's client says about any failure of a connection.
CONNECTION_ERROR = "Connection error."
# The exceptions of OpenAI's client and of httpx that have the request whose connection failed.
ASKED = {"APIConnectionError", "ConnectError"}
ERRNO = re.compile(r"^\[Errno -?\d+\] ")
# Statuses from an address without a model API.
NOWHERE_STATUS = (404, 405)
# FastAPI's 404. Many model servers use FastAPI, but their own errors look different.
NOT_FOUND = {"detail": "Not Found"}
# What litellm and OpenAI's client put before the provider's words, and after them.
# "Error in …" is a sentence.
PREFIX = re.compile(r"(Error code: \d+ - |[\w.]*(Error|Exception|Timeout)\b(?! in )( ?[:-])?\s*)+")
SUFFIX = re.compile(
    r"(\s*Traceback \(most recent|\s*This looks like a bug in LiteLLM|\. Handle with `).*", re.DOTALL
)


def explain(
    error: Exception, model: str, secrets: Iterable[str] = (), *, is_sent: bool = True
) -> ModelCallError:
    """The ModelCallError for one call's exception, without `secrets` and keys of the environment."""
    chain = list(causes(error))
    response = response_in(chain)
    codes = codes_in([json_of(response), *(getattr(cause, "body", None) for cause in chain)])
    status = getattr(response, "status_code", None)
    if status is None and (stated := code_in_answer(chain)) is not None:
        status, codes = status_of(stated), codes | {str(stated).lower()}
    names = frozenset().union(*map(class_names, chain))
    failure = classify(status, codes, names, is_sent=is_sent)
    text = provider_words(error, status, response)
    if text == CONNECTION_ERROR or "ConnectError" in class_names(error):
        text = connection_words(chain)
    if failure is Failure.UNCLEAR:
        text = f"the answer cannot be read: {text}"
    text = for_message(text, secrets)
    return ModelCallError(
        failure,
        f"{model}: {text}" if status is None else f"{model} answered {status}: {text}",
        retry_after=retry_after(getattr(response, "headers", None) or {}),
        is_unconnected=status is None and bool(names & UNCONNECTED),
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
    real = (error for error in chain if class_names(error) & {"APIStatusError", "HTTPStatusError"})
    return next((getattr(error, "response", None) for error in real), None)


def json_of(response: Any) -> Any:
    try:
        return response.json()
    except Exception:
        # There is no response, it is not JSON, or nobody has read it.
        return None


def code_in_answer(chain: list[BaseException]) -> Any:
    """The code of an error that came with HTTP status 200; None without one.

    litellm keeps it in an exception of no class of its own, and puts NO_CODE where the error has none.
    """
    return next(
        (error.status_code for error in chain if type(error) is Exception and hasattr(error, "status_code")),
        None,
    )


def status_of(code: Any) -> int:
    """The HTTP status that an error with this code should have had."""
    if isinstance(code, int) and code != NO_CODE and 400 <= code < 600:
        return code
    return 400 if str(code).lower() in KNOWN_CODES else 200


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


def retry_after(headers: Any) -> float | None:
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


def provider_words(error: Exception, status: int | None, response: Any) -> str:
    """One line for a person, without what litellm puts around the provider's words."""
    if status in NOWHERE_STATUS and is_no_model_api(response):
        return f"no model API is at {address_of(response)}: check the base URL"
    text = SUFFIX.sub("", str(error)).strip()
    # Only at the beginning: further on, these words are the provider's own.
    text = PREFIX.sub("", text, count=1) if PREFIX.match(text) else text
    text = message_within(text) if text.startswith("{") else text
    return " ".join(text.split()) or "no reason was given"


def connection_words(chain: list[BaseException]) -> str:
    """Where the request went, and the innermost reason why that failed."""
    asked = next((cause for cause in chain if ASKED & class_names(cause)), None)
    reasons = [" ".join(str(cause).split()) for cause in chain]
    reason = ERRNO.sub("", next(filter(None, reversed(reasons)), ""))
    return f"the connection to {address_of(asked)} failed: {reason}"


def is_no_model_api(response: Any) -> bool:
    """Whether the response is something other than an error of a model API, such as a web page."""
    try:
        is_empty = not response.content
    except Exception:
        # Nobody has read it.
        return False
    return is_empty or json_of(response) in (None, NOT_FOUND)


def address_of(holder: Any) -> str:
    """Where the request of a response or of an exception went, without the parts that can contain a key."""
    try:
        return str(holder.request.url.copy_with(query=None, userinfo=b""))
    except Exception:
        # Not every HTTP client keeps the request.
        return "this address"


def message_within(text: str) -> str:
    """The message of an error in JSON, which may have text after it; the text itself if there is none."""
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
