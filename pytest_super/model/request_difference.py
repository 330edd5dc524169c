"""Where two requests differ first, for people."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile, zip_longest
from typing import Any

from pytest_super.json_values import objects
from pytest_super.model.protocols.canonical import asked_value
from pytest_super.store.answers import AskedPart, RecordedCall, TrialAnswers
from pytest_super.words import shortened

Parts = Mapping[str, AskedPart]
"""The parts of a request by their ids, in their order."""

# Of a line that is shown, and how many of them are those before the difference.
MOST_CHARACTERS, BEFORE = 100, 30


@dataclass(frozen=True, kw_only=True)
class RequestDifference:
    """The first part that differs, and its lines, without those at both ends that are equal."""

    place: str
    """The field, or the item of the conversation: `tools`, `message 7 (tool)`."""
    before: list[str] = field(default_factory=list)
    now: list[str] = field(default_factory=list)

    @property
    def change(self) -> tuple[str, str]:
        """The first line that differs, before and now; "" where there is none."""
        before, now = self.before[0] if self.before else "", self.now[0] if self.now else ""
        start = max(0, equal_from_start(before, now) - BEFORE)
        cut = [f"…{line[start:]}" if start and line else line for line in (before, now)]
        return shortened(cut[0], MOST_CHARACTERS), shortened(cut[1], MOST_CHARACTERS)

    def __str__(self) -> str:
        before, now = self.change
        return f"{self.place}: {before!r} -> {now!r}" if before or now else self.place


def first_difference(before: Parts, now: Parts) -> RequestDifference | None:
    """Find where two requests differ first; None if they are equal."""
    for old, new in zip_longest(before, now):
        if old != new:
            return difference_of(before, now, old, new)
    return None


def difference_of(before: Parts, now: Parts, old: str | None, new: str | None) -> RequestDifference:
    """Describe the difference of two requests; `old` and `new` are their first parts that differ."""
    was, is_ = before[old] if old else None, now[new] if new else None
    if was and is_ and place_of(was) != place_of(is_) and not (was.item and is_.item):
        # A field that only one of them has.
        names = {part.name for part in now.values()}
        was, is_ = (was, None) if was.name not in names else (None, is_)
    shown = is_ or was
    assert shown is not None
    before_lines, now_lines = without_equal(*(lines_of_part(part) if part else [] for part in (was, is_)))
    return RequestDifference(place=place_of(shown), before=before_lines, now=now_lines)


def lines_of_part(part: AskedPart) -> list[str]:
    value = asked_value(part.name, part.value, part.item)
    if part.item and isinstance(value, dict):
        # Its place has the role.
        value = {name: value[name] for name in value if name != "role"}
    return list(lines_of(value, "" if part.item else part.name))


def place_of(part: AskedPart) -> str:
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


def without_equal(before: list[str], now: list[str]) -> tuple[list[str], list[str]]:
    """The lines without the equal ones at the begin and at the end."""
    start = equal_from_start(before, now)
    before, now = before[start:], now[start:]
    end = equal_from_start(before[::-1], now[::-1])
    return before[: len(before) - end], now[: len(now) - end]


def nearest(
    answers: TrialAnswers, request: Collection[str], number: int, calls: Iterable[RecordedCall]
) -> RecordedCall | None:
    """Find the call that is like this request for longest; of several, the nearest to `number`.

    `request` has the ids of its parts.
    """
    asked = list(request)

    def key(call: RecordedCall) -> tuple[int, int]:
        return equal_from_start(asked, list(answers.request(call.asked))), -abs(call.number - number)

    return max(calls, key=key, default=None)


def equal_from_start(before: Sequence[str], now: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))
