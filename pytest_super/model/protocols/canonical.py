"""What a request asks, part by part: two requests with equal parts get answers of the same distribution.

Left out is what says how an answer is sent, kept, paid or cached, and for whom. Ids that a client or a
provider makes up are numbered in their order. What tools get and what a schema says stays as it is.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple

from pytest_super.json_values import loaded, objects
from pytest_super.model.protocols.folds import ANYWHERE, FOLDS, OF_SYSTEM, Fold, fold
from pytest_super.model.protocols.protocol import Request, WireProtocol
from pytest_super.store.answers import AskedPart
from pytest_super.words import shortened

# A seed chooses one of the answers; it does not change which ones are likely.
NOT_ASKED_NAMES = """
    stream stream_options store metadata client_metadata user safety_identifier seed
    prompt_cache_key prompt_cache_retention prompt_cache_options cache_control
"""
NOT_ASKED = frozenset(NOT_ASKED_NAMES.split())
# Parameters of litellm that say where and how often a provider is asked, and what it costs.
OF_THE_ADDRESS = re.compile(
    r"api_\w+|base_url|base_model|timeout|num_retries|max_retries|extra_headers|organization|\w*cost(_per_\w+)?"
)
IDS = frozenset(("id", "call_id", "tool_call_id", "tool_use_id"))
# Their values belong to tools and to clients, whatever the fields in them are called.
DATA_NAMES = """
    arguments args input response schema json_schema input_schema parameters parametersJsonSchema
    responseSchema responseJsonSchema
"""
DATA = frozenset(DATA_NAMES.split())
# Of a line that has changed, and how many of them are those before the change.
LINE_LIMIT, BEFORE_CHANGE = 100, 30
# Hexadecimal digits of an id. It tells apart the parts of one trial.
ID_LENGTH = 16


class Part(NamedTuple):
    """A field of a request, or one item of its conversation."""

    id: str
    """A digest of this part and of all parts before it, without what is hidden in them."""
    name: str
    """The name of the field."""
    value: Any
    """As it was asked."""
    item: int
    """Its number in the conversation, from 1; 0 for another field."""
    hidden: list[str]
    """Texts in it that are not compared: see `folds`."""


def parts_of(protocol: WireProtocol, request: Request) -> Iterator[Part]:
    """The parts of an accepted request; the id of the last one is the digest of the request."""
    return with_ids(named_values(protocol, request))


def with_ids(values: Iterable[tuple[str, Any, int]]) -> Iterator[Part]:
    """The parts of one request, from their names, values and items."""
    numbered, id = Numbered(), ""
    for name, value, item in values:
        numbered.hidden = []
        text = json.dumps(numbered.part(name, value, item), sort_keys=True)
        id = hashlib.sha256(f"{id}\0{name}\0{text}".encode()).hexdigest()[:ID_LENGTH]
        yield Part(id, name, value, item, numbered.hidden)


def asked_lines(part: Part | AskedPart) -> list[str]:
    """The lines of a single part, without what is not compared."""
    asked = Numbered().part(part.name, part.value, part.item)
    return text_lines(asked) if part.item else list(lines_of(asked, part.name))


def place_of(part: Part | AskedPart) -> str:
    """The field, or the item of the conversation, such as `message 7 (tool)`."""
    return f"message {part.item} ({kind_of(part.value)})" if part.item else part.name


def kind_of(item: Any) -> str:
    """What an item of a conversation is: a role, or the type where that says more."""
    if not isinstance(item, dict):
        return "text"
    for each in (item, *objects(item.get("content"))):
        kind = each.get("type")
        if isinstance(kind, str) and kind not in ("message", "text", "input_text", "output_text"):
            return kind
    return str(item.get("role", "item"))


def text_lines(item: Any) -> list[str]:
    """The lines of an item of a conversation, whose place has its role."""
    if isinstance(item, dict):
        item = {name: value for name, value in item.items() if name != "role"}
    return list(lines_of(item))


def lines_of(value: Any, name: str = "") -> Iterator[str]:
    """The lines of all texts in a JSON value. Short texts and figures have the name of their field."""
    if isinstance(value, dict):
        for each in value:
            yield from lines_of(value[each], each)
    elif isinstance(value, list):
        for each in value:
            yield from lines_of(each, name)
    elif isinstance(value, str) and (name in ("", "content", "text", "output") or "\n" in value):
        yield from value.splitlines()
    else:
        yield f"{name}: {value}" if isinstance(value, str) else f"{name}: {json.dumps(value)}"


def named_values(protocol: WireProtocol, request: Request) -> Iterator[tuple[str, Any, int]]:
    yield "protocol", protocol.name, 0
    for name in sorted(request.keys() - NOT_ASKED - {protocol.conversation}):
        if not OF_THE_ADDRESS.fullmatch(name):
            yield name, request[name], 0
    conversation = request[protocol.conversation]
    if not isinstance(conversation, list):
        yield protocol.conversation, conversation, 0
        return
    for number, value in enumerate(conversation, 1):
        yield protocol.conversation, value, number


def changed_line(before: Iterable[str], now: Iterable[str]) -> str:
    """The first line that differs, as `'before' -> 'now'`; "" if all are equal."""
    for pair in zip_longest(before, now, fillvalue=""):
        if pair[0] != pair[1]:
            equal = takewhile(lambda two: two[0] == two[1], zip(*pair, strict=False))
            start = max(0, len(list(equal)) - BEFORE_CHANGE)
            cut = [f"…{line[start:]}" if start and line else line for line in pair]
            return " -> ".join(repr(shortened(line, LINE_LIMIT)) for line in cut)
    return ""


class Numbered:
    """Replaces the ids of one request by numbers, and leaves out what is hidden and what is not asked."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self.hidden: list[str] = []
        self._folds: tuple[Fold, ...] = ()
        """Those of the part."""

    def part(self, name: str, value: Any, item: int) -> Any:
        self._folds = FOLDS if item else OF_SYSTEM if name == "system" else ANYWHERE
        # A conversation can have the name of a field with data.
        return self.value(value) if item else self.field(name, value)

    def field(self, name: str, value: Any) -> Any:
        if name in IDS and isinstance(value, str):
            return self._ids.setdefault(value, f"#{len(self._ids) + 1}")
        if name == "arguments" and isinstance(value, str):
            return loaded(value, value)
        return value if name in DATA else self.value(value)

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            shown, hidden = fold(value, self._folds)
            self.hidden += hidden
            return shown
        if isinstance(value, list):
            return list(map(self.value, value))
        if not isinstance(value, dict):
            return value
        return {name: self.field(name, item) for name, item in value.items() if name not in NOT_ASKED}
