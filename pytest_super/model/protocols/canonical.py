"""What a request asks, part by part: two requests with equal parts get answers of the same distribution.

Left out is what says how an answer is sent, kept, paid or cached, and for whom. Ids that a client or a
provider makes up are numbered in their order. What tools get and what a schema says stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pytest_super.json_values import loaded
from pytest_super.model.protocols.folds import ANYWHERE, FOLDS, OF_SYSTEM, Fold, fold
from pytest_super.model.protocols.protocol import Request, WireProtocol

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


def asked_value(name: str, value: Any, item: int) -> Any:
    """What a single part asks."""
    return Numbered().part(name, value, item)


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
