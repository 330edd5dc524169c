"""Files that are too long for a prompt, cut to the part around a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.functions.definitions import definitions, find
from pytest_super.functions.source import PythonSource, SourceError
from pytest_super.trial.observation import clipped, gap

if TYPE_CHECKING:
    from pytest_super.tasks.public_task import MissingFunction


def clipped_around(function: MissingFunction, data: bytes, characters: int) -> str:
    """The part of a file that has a function; its beginning and its end if the function cannot be found."""
    text = data.decode("utf-8", "replace")
    if len(text) <= characters:
        return text
    try:
        before = "".join(text.splitlines(keepends=True)[: line_of(function, data) - 1])
    except SourceError:
        return clipped(text, characters)
    start = min(max(len(before) - characters // 3, 0), len(text) - characters)
    end = start + characters
    return "\n".join(filter(None, [gap(start), text[start:end], gap(len(text) - end)]))


def line_of(function: MissingFunction, data: bytes) -> int:
    source = PythonSource.read(function.file, data)
    return find(source, function.name.partition("@")[0], definitions(source)).node.lineno
