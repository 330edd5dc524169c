"""Where the parts of a function and marked regions are in its file's text, and edits of whole lines."""

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pytest_super.functions.source import Definition, Function, Lists, PythonSource, SourceError, last_name
from pytest_super.words import did_you_mean

# The folding marks that editors know.
_BEGIN, _END = re.compile(r"#\s*region\s+(.+?)\s*$"), re.compile(r"#\s*endregion\b")


class Place(NamedTuple):
    """A line, from 1, and a column in characters, from 0."""

    line: int
    column: int


class Parts(NamedTuple):
    """The parts of a function that a mask distinguishes."""

    colon: Place
    """The end of the header."""
    docstring: tuple[Place, Place] | None
    last_line: int
    """The last line of the body, comments included."""
    indent: str


def parts_of(source: PythonSource, definition: Definition) -> Parts:
    """Raises SourceError if there is no body to mask."""
    node = definition.node
    if why := why_nothing(node, node.body[1:] if docstring_of(node) else node.body):
        raise SourceError(f"{source.name}:{node.lineno}: `{definition.name}` cannot be masked: {why}")
    return parts_of_any(source, definition)


def parts_of_any(source: PythonSource, definition: Definition) -> Parts:
    """The same for any function, also for a stub."""
    node = definition.node
    docstring = docstring_of(node)
    return Parts(
        header_end(source, node),
        (begin_of(source, docstring), end_of(source, docstring)) if docstring else None,
        last_line(source, node),
        indent_of(source, node),
    )


def body_text(source: PythonSource, node: Function) -> str:
    """The lines of a function from its first statement after the docstring to its last."""
    statements = statements_of(node)
    return "".join(source.lines[begin_line(statements[0]) - 1 : node.end_lineno])


def statements_of(node: Function) -> list[ast.stmt]:
    """The body without its docstring, unless it is nothing else."""
    return node.body[1:] if docstring_of(node) and node.body[1:] else node.body


def docstring_of(node: Function) -> ast.stmt | None:
    first = node.body[0]
    value = first.value if isinstance(first, ast.Expr) else None
    return first if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def why_nothing(node: Function, statements: list[ast.stmt]) -> str:
    if any(last_name(one).startswith("abstract") for one in node.decorator_list):
        return "it is abstract"
    if all(isinstance(one, ast.Pass) or is_ellipsis(one) for one in statements):
        return "it has no body"
    if isinstance(statements[0], ast.Raise):
        return "it does nothing but raise"
    return ""


def is_ellipsis(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and value.value is ...


def begin_of(source: PythonSource, node: ast.stmt | ast.expr) -> Place:
    return Place(node.lineno, source.column(node.lineno, node.col_offset))


def begin_line(node: ast.stmt) -> int:
    """The line of a statement, or of the expression of its first decorator."""
    lines: list[int] = [one.lineno for one in (node, *getattr(node, "decorator_list", ()))]
    return min(lines)


def first_line(source: PythonSource, node: ast.stmt) -> int:
    """The first line of a statement, its decorators included."""
    first = begin_line(node)
    # The expression of a decorator can begin some lines after its `@`.
    while getattr(node, "decorator_list", ()) and not source.lines[first - 1].lstrip().startswith("@"):
        first -= 1
    return first


def end_of(source: PythonSource, node: Any) -> Place:
    return Place(node.end_lineno, source.column(node.end_lineno, node.end_col_offset))


def header_end(source: PythonSource, node: Function) -> Place:
    """The place after the colon of the header: the first colon after its last expression."""
    parts = [*ast.iter_child_nodes(node.args), *getattr(node, "type_params", ())]
    if node.returns:
        parts.append(node.returns)
    line, column = max([begin_of(source, node), *(end_of(source, part) for part in parts)])
    while True:
        code = source.lines[line - 1][column:].partition("#")[0]
        if ":" in code:
            return Place(line, column + code.index(":") + 1)
        line, column = line + 1, 0


def last_line(source: PythonSource, node: Function) -> int:
    """The last line of the body, with the comments after it that are indented deeper than the header."""
    outer = depth(source.lines[node.lineno - 1])
    last = line = node.end_lineno or node.lineno
    for text in source.lines[line:]:
        line += 1
        if text.lstrip().startswith("#") and depth(text) > outer:
            last = line
        elif text.strip():
            break
    return last


def depth(line: str) -> int:
    """How deep a line is indented; a tab goes to the next multiple of eight, as in Python."""
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())


def leading(line: str) -> str:
    """The blanks at the beginning of a line."""
    return line[: len(line) - len(line.lstrip())]


def indent_of(source: PythonSource, node: Function) -> str:
    """The indentation of the body, or what it would be if the body had a line of its own."""
    outer = leading(source.lines[node.lineno - 1])
    line, column = begin_of(source, node.body[0])
    inner = source.lines[line - 1][:column]
    if not inner.strip() and inner.startswith(outer) and inner != outer:
        return inner
    return outer + ("\t" if outer.startswith("\t") else "    ")


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


# Edits


class Edit(NamedTuple):
    """The lines `first` to `last` become `text`, which contains `statements` instead of the original ones.

    It only inserts if `last` is the line before `first`.
    """

    first: int
    last: int
    text: str
    statements: Sequence[str]


def applied(source: PythonSource, edits: Iterable[Edit]) -> str:
    lines = list(source.lines)
    # From the end, so that the numbers of the lines before stay valid.
    for edit in sorted(edits, key=lambda one: one[:2], reverse=True):
        lines[edit.first - 1 : edit.last] = [edit.text]
    return "".join(lines)


def with_ends(source: PythonSource, line: int, lines: Iterable[str]) -> str:
    """The lines with the ends that the file has at a line."""
    end = source.line_end(line)
    return "".join(one.rstrip("\r\n") + end for one in lines)


def indented(lines: Iterable[str], indent: str) -> list[str]:
    return textwrap.indent(textwrap.dedent("".join(lines)), indent).splitlines(keepends=True)


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
