"""The model's answers of a trial, with what was asked, as `answers.jsonl` in its folder: docs/answers.md.

A request is stored as its parts, each once, with the part before it; its last part names the request.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.json_values import texts
from pytest_super.store.json_lines import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FORMAT = 1
FILE = "answers.jsonl"
# A trial of a thousand calls has about 10 MB.
MOST_MIB = 256


@dataclass(frozen=True, slots=True)
class AskedPart:
    """A field of a request, or an item of its conversation."""

    after: str
    """The id of the part before it; "" for the first one."""
    name: str
    """The field."""
    value: Any
    """As it was asked."""
    item: int = 0
    """Its number in the conversation, from 1; 0 for another field."""
    hidden: Sequence[str] = ()
    """Texts in it that its id does not depend on."""


@dataclass(kw_only=True, slots=True)
class RecordedCall:
    """What became of a call."""

    number: int
    """From 1, in the order of asking."""
    asked: str
    """The id of the last part of its request."""
    started: str = ""
    taken: int | None = None
    """The number of the recorded call whose answer it got; None if it was put to the model."""
    left_after: float | None = None
    """After how many seconds the client left; None if it waited until the end."""
    end: dict[str, Any] = field(default_factory=dict)
    """The `answer` with its facts, or the `error`; empty if the process died before."""


@dataclass(kw_only=True)
class TrialAnswers:
    """The calls of one trial, by number, and the parts of their requests, by id."""

    path: Path
    calls: dict[int, RecordedCall] = field(default_factory=dict)
    parts: dict[str, AskedPart] = field(default_factory=dict)

    @property
    def are_taken(self) -> bool:
        """Whether any of them comes from another record."""
        return any(call.taken is not None for call in self.calls.values())

    def asked(self, number: int) -> dict[str, Any]:
        """The request of a call, without what does not shape its answer."""
        fields: dict[str, Any] = {}
        for part in self.request(self.calls[number].asked).values():
            if part.item:
                fields.setdefault(part.name, []).append(part.value)
            else:
                fields[part.name] = part.value
        return fields

    @cached_property
    def used(self) -> set[str]:
        """The hidden texts that an answer has."""
        hidden = {text for part in self.parts.values() for text in part.hidden}
        said = "\n".join(text for call in self.calls.values() for text in texts(call.end.get("answer")))
        return {text for text in hidden if text in said}

    def request(self, asked: str) -> dict[str, AskedPart]:
        """The parts of a request by their ids, in their order."""
        found: list[tuple[str, AskedPart]] = []
        while asked:
            part = self.parts[asked]
            found.append((asked, part))
            asked = part.after
        return dict(reversed(found))


def read_answers(path: Path) -> TrialAnswers:
    """The answers of a trial; none if the file does not exist. Raises SuperError."""
    answers = TrialAnswers(path=path)
    try:
        if path.stat().st_size > MOST_MIB * 2**20:
            raise SuperError(f"{path} is larger than {MOST_MIB} MiB: it is no record of a trial's answers")
        for number, line in complete_lines(path):
            try:
                add_line(answers, line)
            except UNREADABLE as error:
                raise SuperError(f"{path}:{number}: no line of a record of answers: {error!r}") from None
    except FileNotFoundError:
        pass
    except OSError as error:
        raise SuperError(f"{path} cannot be read: {error.strerror}") from None
    return answers


def complete_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The JSON lines with their numbers. A process that died can have cut one."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, 1):
            try:
                yield number, json.loads(text)
            except (ValueError, RecursionError):
                continue


def add_line(answers: TrialAnswers, line: dict[str, Any]) -> None:
    """Raises one of UNREADABLE, and SuperError for a newer format."""
    if "format" in line:
        if line["format"] > FORMAT:
            raise SuperError(
                f"{answers.path} has format {line['format']}, and this pytest-super reads up to {FORMAT}: "
                "use the version that wrote it, or a newer one"
            )
    elif "part" in line:
        after, name, value = str(line["after"]), str(line["name"]), line["value"]
        # Known before, so that no chain of parts is a circle.
        if after and after not in answers.parts:
            raise KeyError(after)
        part = AskedPart(after, name, value, int(line.get("item", 0)), list(map(str, line.get("hidden", ()))))
        answers.parts.setdefault(str(line["part"]), part)
    elif "asked" in line:
        number, asked = int(line["call"]), str(line["asked"])
        if asked not in answers.parts:
            raise KeyError(asked)
        answers.calls[number] = RecordedCall(
            number=number, asked=asked, started=str(line.get("started", "")), taken=line.get("taken")
        )
    elif "left_after" in line:
        answers.calls[line["call"]].left_after = float(line["left_after"])
    else:
        answers.calls[line["call"]].end = {name: value for name, value in line.items() if name != "call"}
