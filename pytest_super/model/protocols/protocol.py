"""What a protocol of the model door says and does; nothing outside this folder names one.

A request in a protocol that the provider does not speak is converted to chat completions, and the whole
answer back: see `What programs speak` in docs/reference/models.md.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pytest_super.json_values import is_list_of_objects, object_in, parts_in
from pytest_super.model.completion import Failure, ModelCallError
from pytest_super.model.protocols.route import Route

TYPE = re.compile(r"[\w.-]+", re.ASCII)

# The events that end a stream with an error.
ERRORS = ("error", "response.failed")

Request = dict[str, Any]
"""The body of a POST, in plain JSON values."""
Body = dict[str, Any]
"""A whole answer, in plain JSON values."""
Event = dict[str, Any]
"""The data of one server-sent event."""
END_MARK: Event = {"data": "[DONE]"}
"""Stands for `[DONE]`, the last line of a stream of chat completions."""
# Clients that read line by line have limits, some of 64 KiB.
PIECE = 4096
# A hundred times the longest window of any model. A single higher figure would spend every limit of a run.
MOST_TOKENS = 10**9


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a provider says that one answer used."""

    prompt: int
    """All of the prompt, with what was read from a cache and written to it."""
    completion: int
    cached: int = 0
    """Of the prompt: read from a cache."""
    cache_writes: int = 0
    """Of the prompt: written to a cache."""
    hour_writes: int = 0
    """Of these: kept there for an hour, which costs more."""
    thought: int = 0
    """Of the completion: what the client does not see of the model's thoughts."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a provider is asked, with which key, and what it takes; litellm knows what is left out."""

    base_url: str = ""
    base_variables: tuple[str, ...] = ()
    """Of the environment: those that name another base URL."""
    key_variables: tuple[str, ...] = ()
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The variables from which further headers come."""
    takes_parts: bool = False
    """In chat completions: whether a text can be a list of parts."""
    takes_marks: bool = False
    """Whether parts can have marks of what to cache, for models of other providers."""


class WireProtocol(Protocol):
    """One protocol of the model door. Its methods have no state and need no library."""

    name: str
    fields: frozenset[str]
    """Of a request that the provider may see."""
    conversation: str = "messages"
    """The field that has the conversation, as a list of its items."""
    refused: ClassVar[Mapping[str, str]] = {}
    """Fields that would change the meaning of an answer, with the reason."""
    file_types: tuple[str, ...] = ()
    """The types of parts of a request whose tokens nothing bounds."""
    routes: tuple[Route, ...]
    """Of POST. The first one can give a whole answer."""
    models: str
    """The path of the list of models, below which each has its own: see `card`."""
    environment: ClassVar[Mapping[str, str]]
    """The variables that clients read: `{url}` is the address of the model door, `{key}` what it takes."""
    model_field: str = "model"
    """Where an answer names the model that gave it."""
    usage_field: str = "usage"
    key_header: str = ""
    """The header in which clients send the key; "" for `Authorization`."""
    client_headers: tuple[str, ...] = ()
    """The headers of a client that the protocol's own provider gets, in small letters."""
    before: tuple[str | None, ...] = ()
    """The types of events before the first part of an answer."""
    relayed_end: str = ""
    """What a client expects after the last event that was relayed."""
    provider: str
    """Its own provider, as litellm calls it."""
    site: Site
    """That of its own provider."""
    said_in: str
    """The field of events that holds what the model says."""
    harmless: ClassVar[Request]
    """A request with nothing of anybody's prompt in it."""

    # How a provider is asked: the protocol's own, or another that speaks it

    def address(self, base: str, model: str, *, is_stream: bool) -> str:
        """The URL of requests below a base URL. Some protocols name the model there, or the stream."""

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of each request."""

    def content(self, request: Request, model: str, *, is_stream: bool) -> Request:
        """The body of a request for a stream, or for the whole answer at once."""
        return {**request, "model": model, "stream": is_stream}

    def with_defaults(self, request: Request, parameters: Request) -> Request:
        """The request; where it is silent, with the user's parameters, named as in chat completions."""

    def tokens(self, usage: Any) -> Tokens:
        """What the usage of an answer says, with 0 for what it does not."""

    # How an answer comes as a stream

    def has_part(self, event: Event) -> bool:
        """Whether an event of a stream has a part of the answer, after which nobody can ask again."""
        return event.get("type") not in (*self.before, *ERRORS)

    def whole(self, events: list[Event]) -> Body | None:
        """The answer from the events of its stream; None if the stream broke off. Raises StreamError."""

    def usage_of(self, events: list[Event]) -> Any:
        """The last usage that the events of a broken stream state; an empty one if none does."""
        name = self.usage_field
        return next((event[name] for event in reversed(events) if isinstance(event.get(name), dict)), {})

    # What clients ask and get

    def accepted(self, request: Request, *, is_open: bool) -> tuple[Request, list[str]]:
        """The fields that a provider may see, and the names of the hosted tools that were removed.

        A provider runs hosted tools itself: they lead to the web, so they are removed unless the task's
        network is open (`is_open`). Raises ModelCallError, INVALID.
        """

    def seen(self, request: Request) -> Request:
        """The fields that a provider may see. Raises ModelCallError, INVALID."""
        for name, reason in self.refused.items():
            if request.get(name):
                raise invalid(name, reason)
        result = {name: value for name, value in request.items() if name in self.fields and value is not None}
        if not is_list_of_objects(result.get("tools", [])):
            raise invalid("tools", "must be a list of objects")
        return result

    def has_files(self, request: Request) -> bool:
        """Whether an accepted request has parts whose tokens nothing bounds, and chat has no place for."""
        return bool(self.file_types) and any(
            part.get("type") in self.file_types for part in parts_in(request)
        )

    def to_chat(self, request: Request) -> Request:
        """An accepted request as one of chat completions. What these have no place for is left out."""

    def from_chat(self, body: Body, request: Request) -> Body:
        """The answer to `request` from a `chat.completion` object."""

    def said(self, body: Body, request: Request) -> dict[str, Any]:
        """The message of a whole answer to `request`, as one of chat completions."""

    def replay(self, body: Body, request: Request) -> Iterator[Event]:
        """A whole answer to `request` as the events of its stream."""

    def written(self, event: Event) -> str:
        """A server-sent event, as clients expect it."""
        return named_event(event)

    def events(self, body: Body, request: Request) -> Iterator[str]:
        """A whole answer as the server-sent events that a client of the protocol expects."""
        return map(self.written, self.replay(body, request))

    def relayed(self, event: Event, request: Request) -> str:  # noqa: ARG002
        """An event of the provider's stream as the client's server-sent event; "" if it gets none of it."""
        # An error ends the stream, which has an event of ours for it.
        is_error = event.get("type") in ERRORS or event.get("error")
        return "" if is_error else self.written(event)

    def error(self, status: int, code: str, message: str) -> Body:
        """The body of a response with this HTTP status."""

    def error_event(self, code: str, message: str) -> str:
        """What ends a stream that cannot go on."""
        return self.written(self.error(500, code, message))

    def counted(self, tokens: int) -> Body:  # noqa: ARG002
        """The answer to a request for a number of tokens."""
        return {}

    def card(self, name: str) -> dict[str, Any]:
        """What clients are told of a model. Protocols with one path of models share one card and list."""

    def model_list(self, card: dict[str, Any]) -> Body: ...


class StreamError(Exception):
    """The provider ended a stream with an error. `data` is the error's JSON."""

    def __init__(self, data: Any) -> None:
        super().__init__("the stream ended with an error")
        self.data = data


def headers_for(protocol: WireProtocol, headers: Mapping[str, str]) -> dict[str, str]:
    """Keep a client's headers that the protocol's own provider gets."""
    return {name: headers[name] for name in protocol.client_headers if name in headers}


def invalid(place: str, reason: str) -> ModelCallError:
    return ModelCallError(Failure.INVALID, f"{place} {reason}")


@contextmanager
def reading() -> Iterator[None]:
    """The block reads a request, whose fields can be of any type. Raises ModelCallError, INVALID."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise invalid("the request", "has a field of a wrong type") from None


def named_event(event: Event) -> str:
    """A server-sent event that is named by its `type`."""
    kind = str(event.get("type"))
    # A provider's type could begin another line.
    name = f"event: {kind}\n" if TYPE.fullmatch(kind) else ""
    return f"{name}data: {json.dumps(event)}\n\n"


def data_event(event: Event) -> str:
    """A server-sent event without a name."""
    return f"data: {'[DONE]' if event == END_MARK else json.dumps(event)}\n\n"


def pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def plain_error(code: str, message: str) -> Body:
    """An error in the form of OpenAI, which most clients understand."""
    return {"error": {"message": message, "type": "pytest_super", "param": None, "code": code}}


def count(value: Any) -> int:
    """A number of tokens; 0 for what is none, and for what is more than any answer uses."""
    return value if is_count(value) else 0


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def detail(usage: Any, group: str, name: str) -> int:
    """A number of tokens among the details of a usage; 0 if none is stated."""
    return count(object_in(usage, group).get(name))


def chat_tokens(usage: Any) -> Tokens:
    """What the usage of a chat completion says."""
    prompt, completion = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    thought = detail(usage, "completion_tokens_details", "reasoning_tokens")
    if usage.get("total_tokens") == prompt + completion + thought:
        # xAI's completion is without its thoughts.
        completion += thought
    # DeepSeek's name, and Moonshot's.
    others = [count(usage.get(name)) for name in ("prompt_cache_hit_tokens", "cached_tokens")]
    cached = max(detail(usage, "prompt_tokens_details", "cached_tokens"), *others)
    return Tokens(prompt, completion, cached, thought=thought)


def text_of(content: Any) -> str:
    """The text of a content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))
