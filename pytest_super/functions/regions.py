"""Marked regions of lines inside functions."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_super.functions.definitions import Definition
from pytest_super.functions.source import PythonSource, SourceError
from pytest_super.functions.spans import last_line
from pytest_super.words import did_you_mean

# The folding marks that editors know.
_BEGIN, _END = re.compile(r"#\s*region\s+(.+?)\s*$"), re.compile(r"#\s*endregion\b")


@dataclass(frozen=True)
class Region:
    """The lines between two comments, `# region NAME` and `# endregion`, which are lines themselves."""

    name: str
    begin: int
    end: int


def find_region(source: PythonSource, definition: Definition, name: str) -> Region:
    """Raises SourceError."""
    first, last = definition.node.lineno, last_line(source, definition.node)
    inside = qualified([one for one in regions(source) if first < one.begin and one.end <= last])
    where = f"{source.name}:{first}: `{definition.name}`"
    found = [one for one in inside if one.name == name]
    found = found or [one for one in inside if one.name.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        candidates = ", ".join(f"{one.name} (line {one.begin})" for one in found)
        raise SourceError(f"{where} has {len(found)} regions named `{name}`: {candidates}")
    hint = did_you_mean(name, [one.name for one in inside], most=3)
    raise SourceError(f"{where} has no lines between `# region {name}` and `# endregion`{hint}")


def qualified(found: Sequence[Region]) -> list[Region]:
    """Put the names of the regions around each in front of its own, as in `outer.inner`."""
    outermost_first = sorted(found, key=lambda one: one.begin)
    return [
        replace(
            one,
            name=".".join(outer.name for outer in outermost_first if outer.begin <= one.begin <= outer.end),
        )
        for one in found
    ]


def regions(source: PythonSource) -> list[Region]:
    """The regions of a file; they can nest. Raises SourceError for marks without a counterpart."""
    found, open_marks = [], []
    for line, comment in comment_lines(source):
        if begin := _BEGIN.match(comment):
            open_marks.append((begin[1], line))
        elif _END.match(comment):
            if not open_marks:
                raise SourceError(f"{source.name}:{line}: this `# endregion` ends no region")
            name, first = open_marks.pop()
            found.append(Region(name, first, line))
    if open_marks:
        name, line = open_marks[-1]
        raise SourceError(f"{source.name}:{line}: the region `{name}` has no `# endregion`")
    return found


def comment_lines(source: PythonSource) -> Iterator[tuple[int, str]]:
    """Comments that have a line of their own, with their line numbers."""
    text = "".join(f"{line.rstrip(chr(13) + chr(10))}\n" for line in source.lines)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
            yield token.start[0], token.string
