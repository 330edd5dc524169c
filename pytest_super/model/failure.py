"""What an exception of a model library means.

litellm gives the same failure different exceptions by provider and version (a missing key is an
AuthenticationError, an APIError or an InternalServerError with a status of its own making), so that the whole
chain of causes is read: it holds the HTTP client's exception where a provider answered.
"""

from __future__ import annotations

import json
import os
import re
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import TYPE_CHECKING, Any

from pytest_super.model.answer import ModelCallError, Trouble, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_MESSAGE = 400
# Said by providers about the account, with one status or another.
SPENT = re.compile(
    r"insufficient[ _]quota|insufficient (balance|credits|funds)|credit balance is too low|"
    r"billing_(hard_limit|not_active)|account (is not active|has been deactivated)|account_deactivated"
)
UNKNOWN_MODEL = re.compile(
    r"model_not_found|not a valid model|invalid model (id|name)|llm provider not provided"
)
TOO_LONG = re.compile(r"context_length_exceeded|maximum context length|context window|prompt is too long")
UNSAFE = re.compile(
    r"content_policy_violation|content_filter|content management policy|safety system|input was flagged"
)
# Said before any call is made.
UNPREPARED = re.compile(r"credentials|api[ _]?key|api_base is required")
# More than the account may send in a minute: waiting does not make it less.
TOO_LARGE = re.compile(r"request too large")
PASSING_STATUS = (408, 409, 425)
FATAL_STATUS = (401, 402, 403, 404)

SECRET_NAME = re.compile(r"(^|_)(KEYS?|TOKENS?|SECRETS?|PASSWORD|CREDENTIALS?)(_|$)", re.IGNORECASE)
# A shorter value might be a word of the message.
SHORTEST_SECRET = 8
PREFIX = re.compile(r"(Error code: \d+ - |[\w.]*(Error|Exception|Timeout)\b( ?[:-])?\s*)+")
NOISE = re.compile(
    r"\s*(Traceback \(most recent call last\).*|This looks like a bug in LiteLLM.*|ssl:<[^>]*>"
    r"|\. Handle with `litellm\.\w+`\.)",
    re.DOTALL,
)


def explain(error: Exception, model: str, secrets: Iterable[str] = ()) -> ModelCallError:
    """The exception of one call as ours; its message has none of `secrets` nor of the environment's keys."""
    chain = list(causes(error))
    response = answered(chain)
    status = getattr(response, "status_code", None)
    said = provider_said(chain, response)
    trouble = judge(error, chain, status if response is not None else None, said)
    # Cut at last, because that might leave half of a key.
    text = cut(redact(words_of(str(error)), [*secrets, *environment_secrets()]))
    if "llm provider not provided" in said:
        text = "no such provider: a model is named as litellm names it, PROVIDER/MODEL, such as openai/gpt-4o"
    if trouble is Trouble.TRANSIENT and response is None and not is_from_network(chain):
        text = f"the answer cannot be read: {text}"
    where = model if status is None else f"{model} answered {status}"
    wait = retry_after(getattr(response, "headers", None) or {})
    return ModelCallError(trouble, f"{where}: {text}", retry_after=wait, status=status)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and what it came from, outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def kinds(error: BaseException) -> set[str]:
    """By name, because the HTTP client is one of several packages with the same names."""
    return {kind.__name__ for kind in type(error).__mro__}


def answered(chain: list[BaseException]) -> Any:
    """The provider's HTTP response, None when there was none; litellm makes up responses of its own."""
    errors = (error for error in chain if kinds(error) & {"APIStatusError", "HTTPStatusError"})
    real = (error for error in errors if "litellm" not in type(error).__module__)
    return next((getattr(error, "response", None) for error in real), None)


def provider_said(chain: list[BaseException], response: Any) -> str:
    """All that can be searched for a reason, in lower case: messages and the error's codes."""
    said = [str(chain[0])]
    for error in chain:
        body = getattr(error, "body", None)
        said += [json.dumps(body, default=str)] if body else []
    if "html" in getattr(response, "headers", {}).get("content-type", ""):
        said.append("<html")
    return " ".join(said).lower()


def judge(error: Exception, chain: list[BaseException], status: int | None, said: str) -> Trouble:
    if status is None:
        return judge_unanswered(error, chain, said)
    return judge_status(status, said, kinds(error))


def judge_unanswered(error: Exception, chain: list[BaseException], said: str) -> Trouble:
    """Nothing came, or nothing that can be read, or the library did not get as far as to ask."""
    if any(isinstance(cause, ImportError) for cause in chain):
        return Trouble.FATAL
    if any(isinstance(cause, UnicodeError) or "not JSON compliant" in str(cause) for cause in chain):
        return Trouble.REFUSED
    made_up = getattr(error, "status_code", None)
    if made_up in FATAL_STATUS or UNKNOWN_MODEL.search(said):
        return Trouble.FATAL
    if UNPREPARED.search(said) and not is_from_network(chain):
        return Trouble.FATAL
    if "ContextWindowExceededError" in kinds(error):
        return Trouble.CONTEXT
    return Trouble.REFUSED if made_up == 400 else Trouble.TRANSIENT


def is_from_network(chain: list[BaseException]) -> bool:
    """Whether the way to the provider failed, time-outs included."""
    return any(isinstance(cause, OSError) for cause in chain)


def judge_status(status: int, said: str, names: Iterable[str] = ()) -> Trouble:
    """What a provider's answer with an error means; `said` in lower case."""
    if status >= 500 or status in PASSING_STATUS:
        return Trouble.TRANSIENT
    if SPENT.search(said):
        return Trouble.FATAL
    if status == 429:
        return Trouble.REFUSED if TOO_LARGE.search(said) else Trouble.RATE_LIMITED
    if "ContextWindowExceededError" in names or status == 413 or TOO_LONG.search(said):
        return Trouble.CONTEXT
    if "ContentPolicyViolationError" in names or UNSAFE.search(said):
        return Trouble.FILTERED
    if UNKNOWN_MODEL.search(said):
        return Trouble.FATAL
    # A page is no provider's answer: some firewall did not like what this one prompt holds.
    is_page = "<html" in said
    return Trouble.FATAL if status in FATAL_STATUS and not is_page else Trouble.REFUSED


def retry_after(headers: Any) -> float | None:
    """Seconds that a response asks to wait for; None where it asks for nothing that can be read."""
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = parse_retry_after(headers.get("retry-after") or "")
    except ValueError:
        return None
    return max(0.0, seconds) if isfinite(seconds) else None


def parse_retry_after(text: str) -> float:
    """Seconds, from a number or from a date as HTTP writes it. Raises ValueError."""
    try:
        return float(text)
    except ValueError:
        return parsedate_to_datetime(text).timestamp() - time()


def words_of(text: str) -> str:
    """One line without what litellm puts around a provider's words."""
    text = NOISE.sub("", text).strip()
    text = PREFIX.sub("", text, count=1) if PREFIX.match(text) else text
    text = message_within(text) if text.startswith("{") else text
    return " ".join(text.split()) or "no reason was given"


def cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def message_within(text: str) -> str:
    """The message of an error in JSON, which may have text after it; the text itself where there is none."""
    try:
        data, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return text
    error = data.get("error", data)
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) and message else text


def environment_secrets() -> list[str]:
    return [value for name, value in os.environ.items() if SECRET_NAME.search(name)]


def secrets_in(parameters: Mapping[str, Any]) -> list[str]:
    """Keys that the user gave for every call; of a header such as `Bearer KEY` its last word."""
    named = [value for name, value in parameters.items() if SECRET_NAME.search(name)]
    values = texts([*named, parameters.get("extra_headers")])
    return [value.split()[-1] for value in values if value.strip()]


def redact(text: str, secrets: Iterable[str]) -> str:
    # The longest first, because one may begin another.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "[key]")
    return text
