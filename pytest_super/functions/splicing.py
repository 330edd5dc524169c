"""Puts the bodies of functions from one version of a file into another."""

from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING

from pytest_super.functions.definitions import definitions, find
from pytest_super.functions.edits import Edit, applied, as_ended, kept_line
from pytest_super.functions.regions import find_region
from pytest_super.functions.source import PythonSource, SourceError, parsed
from pytest_super.functions.spans import begin_of, docstring_of, indent_of, last_line, parts_of_any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_super.functions.definitions import Definition


def spliced(name: str, original: bytes, changed: bytes, targets: Iterable[str]) -> bytes:
    """The original file with only the bodies of some functions from the changed one.

    `targets` are names of functions and regions as in `masking.mask_file`; `name` is the file's path, for
    messages. Raises SourceError if the changed file cannot be parsed, or has no such function or region.
    """
    ours, theirs = PythonSource.read(name, original), PythonSource.read(name, changed)
    known, others = definitions(ours), definitions(theirs)
    edits = [edit_of(ours, theirs, find(ours, one.partition("@")[0], known), others, one) for one in targets]
    text = applied(ours, edits)
    try:
        data = ours.encode(text)
    except UnicodeEncodeError:
        raise SourceError(f"{name}: the bodies have characters that {ours.encoding} has not") from None
    PythonSource.read(name, data)
    return data


def edit_of(
    ours: PythonSource, theirs: PythonSource, own: Definition, others: Sequence[Definition], target: str
) -> Edit:
    plain = own.name.partition("#")[0]
    # Of equal names the changed file can have only the one that is meant.
    other = next((one for one in others if one.name in (own.name, plain)), None)
    if other is None:
        raise SourceError(f"{theirs.name}: the function `{own.name}` is not there")
    region = target.partition("@")[2]
    if region:
        return region_edit(ours, theirs, own, other, region)
    parts = parts_of_any(ours, own)
    kept_to = parts.docstring[1] if parts.docstring else parts.colon
    body = with_ends(ours, own, body_lines(theirs, other, indent_of(ours, own.node)))
    text = kept_line(ours, kept_to) + body
    return Edit(kept_to.line, parts.last_line, as_ended(ours, parts.last_line, text), ())


def region_edit(
    ours: PythonSource, theirs: PythonSource, own: Definition, other: Definition, region: str
) -> Edit:
    here, there = find_region(ours, own, region), find_region(theirs, other, region)
    lines = theirs.lines[there.begin : there.end - 1]
    return Edit(here.begin + 1, here.end - 1, with_ends(ours, own, lines), ())


def body_lines(source: PythonSource, definition: Definition, indent: str) -> list[str]:
    """The lines of a body without its docstring, indented by `indent`. Raises SourceError if they change."""
    node = definition.node
    statements = node.body[1:] if docstring_of(node) and node.body[1:] else node.body
    decorators: list[ast.expr] = getattr(statements[0], "decorator_list", [])
    begin = min([begin_of(source, statements[0]), *(begin_of(source, one) for one in decorators)])
    if decorators:
        # A decorator begins before its expression, with `@`.
        begin = begin._replace(column=source.lines[begin.line - 1].index("@"))
    lines = list(source.lines[begin.line - 1 : last_line(source, node)])
    before = lines[0][: begin.column]
    if before.strip():
        # The body begins in the line of the header.
        lines = [indent + lines[0][begin.column :], *lines[1:]]
    elif before != indent:
        lines = textwrap.indent(textwrap.dedent("".join(lines)), indent).splitlines(keepends=True)
        refuse_changed(source, definition, statements, lines)
    return lines


def refuse_changed(
    source: PythonSource, definition: Definition, statements: list[ast.stmt], lines: Sequence[str]
) -> None:
    """A text over several lines is another one when it is indented otherwise."""
    kind = "async def" if isinstance(definition.node, ast.AsyncFunctionDef) else "def"
    try:
        (function,) = parsed(f"{kind} f():\n" + "".join(lines)).body
        is_same = isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and [
            ast.dump(one) for one in function.body
        ] == [ast.dump(one) for one in statements]
    except SyntaxError:
        is_same = False
    if not is_same:
        raise SourceError(f"{source.name}: the body of `{definition.name}` cannot be indented otherwise")


def with_ends(source: PythonSource, definition: Definition, lines: Iterable[str]) -> str:
    """The lines with the file's own line ends."""
    end = source.line_end(definition.node.lineno)
    return "".join(line.rstrip("\r\n") + end for line in lines)


def are_alike(one: bytes, other: bytes) -> bool:
    """Whether two files are the same to Python: comments and blanks do not count."""
    try:
        return ast.dump(parsed(one)) == ast.dump(parsed(other))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return one == other
