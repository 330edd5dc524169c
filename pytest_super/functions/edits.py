"""Edits of a file's whole lines, which change no other byte, and the check that they change nothing else."""

import ast
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from pytest_super.functions.definitions import Function
from pytest_super.functions.source import PythonSource
from pytest_super.functions.spans import Place, Region, begin_line

Lists: TypeAlias = "dict[tuple[int, str], list[Any]]"
"""Lists of a tree that are expected to be others, by the node's `id` and the field's name."""


class Edit(NamedTuple):
    """The lines `first` to `last` become `text`, which contains `statements` instead of the original ones.

    It only inserts if `last` is the line before `first`.
    """

    first: int
    last: int
    text: str
    statements: Sequence[str]
    keeps_docstring: bool = False


def applied(source: PythonSource, edits: Iterable[Edit]) -> str:
    lines = list(source.lines)
    # From the end, so that the numbers of the lines before stay valid.
    for edit in sorted(edits, key=lambda one: one[:2], reverse=True):
        lines[edit.first - 1 : edit.last] = [edit.text]
    return "".join(lines)


def kept_line(source: PythonSource, kept_to: Place) -> str:
    """The line up to this place, with the comment that follows, but without a statement that does."""
    line = source.lines[kept_to.line - 1]
    rest = line[kept_to.column :]
    is_comment = rest.isspace() or rest.lstrip().startswith("#")
    is_whole = is_comment and rest.endswith(("\r", "\n"))
    return line if is_whole else line[: kept_to.column] + source.line_end(kept_to.line)


def with_ends(source: PythonSource, line: int, lines: Iterable[str]) -> str:
    """The lines with the ends that the file has at a line."""
    end = source.line_end(line)
    return "".join(one.rstrip("\r\n") + end for one in lines)


def indented(lines: Iterable[str], indent: str) -> list[str]:
    return textwrap.indent(textwrap.dedent("".join(lines)), indent).splitlines(keepends=True)


def as_ended(source: PythonSource, line: int, text: str) -> str:
    """The text that replaces lines up to `line`: a file whose last line has no end keeps it so."""
    return text if source.lines[line - 1].endswith(("\r", "\n")) else text.rstrip("\r\n")


def expect_in_place(lists: Lists, function: Function, region: Region, stub: Sequence[ast.stmt]) -> bool:
    """Expect `stub` in place of a region's statements; False if the region contains no whole statement."""
    if (found := place_of(function, region)) is None:
        return False
    node, field, inside = found
    current = lists.get((id(node), field), getattr(node, field))
    position = current.index(inside[0])
    rest = [one for one in current if one not in inside]
    lists[id(node), field] = [*rest[:position], *stub, *rest[position:]]
    return True


def inside_of(function: Function, region: Region) -> list[ast.stmt]:
    """The whole statements in a region that are next to each other in one block."""
    found = place_of(function, region)
    return found[2] if found else []


def place_of(function: Function, region: Region) -> tuple[ast.AST, str, list[ast.stmt]] | None:
    """The node and the field of the block that has whole statements in a region, and these statements."""
    for node in ast.walk(function):
        for field, value in ast.iter_fields(node):
            statements = value if isinstance(value, list) else []
            inside = [one for one in statements if isinstance(one, ast.stmt) and is_inside(one, region)]
            if inside:
                return node, field, inside
    return None


def is_inside(statement: ast.stmt, region: Region) -> bool:
    first = begin_line(statement)
    return region.begin < first and (statement.end_lineno or first) < region.end


def are_equal(original: ast.AST, masked: ast.AST, lists: Mapping[tuple[int, str], list[Any]]) -> bool:
    """Whether two trees are equal but for positions, where `lists` replaces lists of the original."""
    waiting: list[tuple[Any, Any]] = [(original, masked)]
    while waiting:
        one, other = waiting.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, list):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        elif isinstance(one, ast.AST):
            for field in one._fields:
                value = getattr(one, field, None)
                if isinstance(value, list):
                    value = lists.get((id(one), field), value)
                waiting.append((value, getattr(other, field, None)))
        elif one != other:
            return False
    return True
