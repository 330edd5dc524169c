"""The stub of a masked function: what it does instead of the body, and the edit that puts it in place."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from pytest_super.functions.definitions import Definition, Function
from pytest_super.functions.edits import Edit, as_ended, kept_line
from pytest_super.functions.source import PythonSource, SourceError
from pytest_super.functions.spans import Region, indent_of, leading, parts_of

Docstrings: TypeAlias = Literal["keep", "drop"] | Mapping[str, str]
"""What happens to the docstrings of masked functions; a mapping has the new ones by target."""
MESSAGE = "this function is masked"
Stub: TypeAlias = Literal["raise", "none", "zero", "first"]
"""What a stub does: it raises NotImplementedError, or it returns None, 0 or its first argument."""


def stub_lines(definition: Definition, stub: Stub) -> list[str]:
    """A stub is a generator or a coroutine if its function is one."""
    node = definition.node
    lines = [f'raise NotImplementedError("{MESSAGE}")' if stub == "raise" else returned(definition, stub)]
    if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in own_nodes(node)):
        # Python allows no value here in an asynchronous generator.
        if stub != "raise" and isinstance(node, ast.AsyncFunctionDef):
            lines = ["return"]
        lines.append("yield")
    return lines


def returned(definition: Definition, stub: Stub) -> str:
    if stub == "zero":
        return "return 0"
    name = first_argument(definition) if stub == "first" else None
    return f"return {name}"


def first_argument(definition: Definition) -> str | None:
    """The name of the first argument after the one that a method is bound to."""
    arguments = definition.node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    is_static = any(
        isinstance(one, ast.Name) and one.id == "staticmethod" for one in definition.node.decorator_list
    )
    if definition.is_method and not is_static:
        names = names[1:]
    others = [one.arg for one in (arguments.vararg, *arguments.kwonlyargs, arguments.kwarg) if one]
    return next(iter([*names, *others]), None)


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes that are evaluated in the function's own frame, so not those of functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [*node.decorator_list, node.args]
        elif isinstance(node, ast.Lambda):
            waiting.append(node.args)
        elif isinstance(node, ast.ClassDef):
            waiting += [*node.decorator_list, *node.bases, *node.keywords]
        else:
            waiting += ast.iter_child_nodes(node)


def body_edit(source: PythonSource, definition: Definition, docstring: str, stub: Stub) -> Edit:
    """Replace a function's body by a stub. `docstring` is "keep", "drop", or a new one in quotes."""
    parts = parts_of(source, definition)
    kept_to, statements = parts.colon, stub_lines(definition, stub)
    keeps = False
    if docstring == "keep" and parts.docstring:
        begin, end = parts.docstring
        keeps = begin.line > parts.colon.line
        if keeps:
            kept_to = end
        else:
            # The header and the docstring share a line; the docstring gets one of its own.
            lines = source.lines[begin.line - 1 : end.line]
            lines[-1] = lines[-1][: end.column]
            lines[0] = lines[0][begin.column :]
            docstring = "".join(lines)
    if docstring not in {"keep", "drop"}:
        statements = [docstring, *statements]
    text = kept_line(source, kept_to) + block(source, definition, parts.indent, statements)
    return Edit(kept_to.line, parts.last_line, as_ended(source, parts.last_line, text), statements, keeps)


def block(source: PythonSource, definition: Definition, indent: str, statements: Iterable[str]) -> str:
    end = source.line_end(definition.node.lineno)
    return "".join(f"{indent}{one}{end}" for one in statements)


def region_edit(source: PythonSource, definition: Definition, region: Region, stub: Stub) -> Edit:
    """Replace the lines between the marks of a region. Raises SourceError if it has no code."""
    inside = range(region.begin + 1, region.end)
    code = [line for line in inside if (text := source.lines[line - 1].strip()) and text[0] != "#"]
    if not code:
        raise SourceError(f"{source.name}:{region.begin}: there is no code in the region `{region.name}`")
    indent = leading(source.lines[code[0] - 1])
    # Unlike a body, a region may have nothing to return.
    statements = stub_lines(definition, stub) if stub == "raise" else ["pass"]
    return Edit(inside.start, region.end - 1, block(source, definition, indent, statements), statements)


def quoted(source: PythonSource, definition: Definition, text: str) -> str:
    """A docstring with this text, in the file's encoding and indented like the body."""
    indent, end = indent_of(source, definition.node), source.line_end(definition.node.lineno)
    escaped = text.strip().replace("\\", "\\\\").replace('"', '\\"').replace("\0", "\\0")
    encodable = escaped.encode(source.encoding, "backslashreplace").decode(source.encoding)
    first, *others = encodable.splitlines() or [""]
    return '"""' + end.join([first, *(f"{indent}{one}" if one.strip() else "" for one in others)]) + '"""'
