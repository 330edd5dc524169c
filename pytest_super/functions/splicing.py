"""Puts other bodies into functions: those of another version of the file, with what they need around them, or
their own ones with probes, which tell that they were executed.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_super.functions.additions import Additions
from pytest_super.functions.source import (
    Definition,
    Lists,
    PythonSource,
    SourceError,
    are_equal,
    codec,
    definitions,
    find,
    parsed,
)
from pytest_super.functions.spans import (
    Edit,
    Parts,
    Place,
    applied,
    begin_of,
    expect_in_place,
    find_region,
    first_line,
    indented,
    inside_of,
    last_line,
    parts_of,
    parts_of_any,
    statements_of,
    with_ends,
)

ENCODINGS = frozenset(map(codec, ("utf-8", "utf-8-sig", "ascii", "latin-1")))


class Spliced(NamedTuple):
    """An original file with the bodies of some functions from a changed one."""

    data: bytes
    is_alike: bool
    """Whether it is the same to Python as the changed file: comments and blanks do not count."""
    taken: list[str]
    """The names of what was taken besides the bodies."""
    left_out: list[str]
    """What the changed file has besides: names, or `line N` for what has none."""


def spliced(name: str, original: bytes, changed: bytes, targets: Iterable[str]) -> Spliced:
    """The original file with the bodies of some functions from the changed one, and what only defines.

    `targets` are names of functions and regions as in `masking.mask_file`; `name` is the file's path, for
    messages. `Additions` says what is taken besides. The original is trusted, and the changed file is not:
    see `bounded`. Raises SourceError if the changed file cannot be parsed, or has no such function or region.
    """
    ours = PythonSource.read(name, original)
    theirs = PythonSource.read(name, changed, {*ENCODINGS, codec(ours.encoding)})
    known, others = definitions(ours), definitions(theirs)
    found = {one: find(ours, one.partition("@")[0], known) for one in targets}
    lists: Lists = {}
    edits = [edit_of(ours, theirs, own, others, one, lists) for one, own in found.items()]
    additions = Additions(ours, theirs, [own.node for own in found.values()], lists)
    text = applied(ours, [*edits, *additions.edits])
    try:
        data = ours.encode(text)
    except UnicodeEncodeError:
        raise SourceError(f"{name}: the bodies have characters that {ours.encoding} has not") from None
    tree = PythonSource.read(name, data).tree
    if not are_equal(ours.tree, tree, lists):
        raise SourceError(f"{name}: the bodies would change other statements of the original")
    return Spliced(data, are_equal(tree, theirs.tree, {}), additions.taken, additions.left_out)


def edit_of(
    ours: PythonSource,
    theirs: PythonSource,
    own: Definition,
    others: Sequence[Definition],
    target: str,
    lists: Lists,
) -> Edit:
    """Puts a target in place. `lists` gets the statements that are expected then."""
    # Of equal names the changed file can have only the one that is meant.
    other = next((one for one in others if one.name in (own.name, own.plain_name)), None)
    if other is None:
        raise SourceError(f"{theirs.name}: the function `{own.name}` is not there")
    region = target.partition("@")[2]
    if region:
        here, there = find_region(ours, own, region), find_region(theirs, other, region)
        lines = theirs.lines[there.begin : there.end - 1]
        expect_in_place(lists, own.node, here, inside_of(other.node, there))
        return Edit(here.begin + 1, here.end - 1, with_ends(ours, own.node.lineno, lines), ())
    parts = parts_of_any(ours, own)
    lists[id(own.node), "body"] = [*own.node.body[: bool(parts.docstring)], *statements_of(other.node)]
    return new_body(ours, own, parts, body_lines(theirs, other, parts.indent))


def new_body(
    source: PythonSource,
    definition: Definition,
    parts: Parts,
    lines: Iterable[str],
    statements: Sequence[str] = (),
) -> Edit:
    """Replaces a body by these lines; the docstring stays. `statements` are those of an `Edit`."""
    kept_to, docstring = parts.colon, list[str]()
    if parts.docstring:
        begin, end = parts.docstring
        if begin.line > parts.colon.line:
            kept_to = end
        else:
            # The header and the docstring share a line; the docstring gets one of its own.
            own = source.lines[begin.line - 1 : end.line]
            own[-1] = own[-1][: end.column]
            own[0] = own[0][begin.column :]
            docstring = [parts.indent + "".join(own)]
    text = kept_line(source, kept_to) + with_ends(source, definition.node.lineno, [*docstring, *lines])
    if not source.lines[parts.last_line - 1].endswith(("\r", "\n")):
        # A file whose last line has no end keeps it so.
        text = text.rstrip("\r\n")
    return Edit(kept_to.line, parts.last_line, text, statements)


def kept_line(source: PythonSource, kept_to: Place) -> str:
    """The line up to this place, with the comment that follows, but without a statement that does."""
    line = source.lines[kept_to.line - 1]
    rest = line[kept_to.column :]
    is_comment = rest.isspace() or rest.lstrip().startswith("#")
    is_whole = is_comment and rest.endswith(("\r", "\n"))
    return line if is_whole else line[: kept_to.column] + source.line_end(kept_to.line)


def body_lines(source: PythonSource, definition: Definition, indent: str) -> list[str]:
    """The lines of a body without its docstring, indented by `indent`. Raises SourceError if they change."""
    node, statements = definition.node, statements_of(definition.node)
    begin = begin_of(source, statements[0])
    if (first := first_line(source, statements[0])) < begin.line:
        # A decorator begins where its function does, some lines earlier.
        begin = Place(first, begin.column)
    lines = list(source.lines[begin.line - 1 : last_line(source, node)])
    before = lines[0][: begin.column]
    if before.strip():
        # The body begins in the line of the header.
        lines = [indent + lines[0][begin.column :], *lines[1:]]
    elif before != indent:
        lines = indented(lines, indent)
        refuse_changed(source, definition, statements, lines)
    return lines


def refuse_changed(
    source: PythonSource, definition: Definition, statements: list[ast.stmt], lines: Sequence[str]
) -> None:
    """A text over several lines is another one when it is indented otherwise."""
    kind = "async def" if isinstance(definition.node, ast.AsyncFunctionDef) else "def"
    try:
        (function,) = parsed(f"{kind} f():\n" + "".join(lines)).body
        is_same = isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and are_equal(
            ast.Module(function.body, []), ast.Module(statements, []), {}
        )
    except SyntaxError:
        is_same = False
    if not is_same:
        raise SourceError(f"{source.name}: the body of `{definition.name}` cannot be indented otherwise")


def probed(name: str, data: bytes, probes: Mapping[str, str]) -> bytes:
    """The file with the statement of each target at the beginning of its function. Raises SourceError."""
    source = PythonSource.read(name, data)
    known = definitions(source)
    statements: dict[Definition, list[str]] = {}
    for target, statement in probes.items():
        function, _, region = target.partition("@")
        definition = find(source, function, known)
        if region:
            find_region(source, definition, region)
        statements.setdefault(definition, []).append(statement)
    edits = [probe_edit(source, one, lines) for one, lines in statements.items()]
    return source.encode(applied(source, edits))


def probe_edit(source: PythonSource, definition: Definition, statements: list[str]) -> Edit:
    parts = parts_of(source, definition)
    lines = [f"{parts.indent}{one}\n" for one in statements]
    return new_body(source, definition, parts, [*lines, *body_lines(source, definition, parts.indent)])
