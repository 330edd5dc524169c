"""Masks functions of Python files by stubs, and checks that nothing else has changed."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from pytest_super.errors import SuperError
from pytest_super.functions.source import (
    Definition,
    Function,
    Lists,
    PythonSource,
    SourceError,
    are_equal,
    by_file,
    definitions,
    find,
    last_name,
    parsed,
)
from pytest_super.functions.spans import (
    Edit,
    Region,
    applied,
    begin_line,
    body_text,
    docstring_of,
    expect_in_place,
    find_region,
    leading,
    parts_of,
    with_ends,
)
from pytest_super.functions.splicing import new_body
from pytest_super.reading import read_bytes
from pytest_super.words import did_you_mean

MESSAGE = "this function is masked"
Stub: TypeAlias = Literal["raise", "none", "zero", "first"]
"""What a stub does: it raises NotImplementedError, or it returns None, 0 or its first argument."""


@dataclass(frozen=True)
class Target:
    """A function to mask, or a region in it."""

    definition: Definition
    region: Region | None
    edit: Edit

    @property
    def name(self) -> str:
        return self.definition.name + (f"@{self.region.name}" if self.region else "")

    @property
    def lines(self) -> range:
        """The lines of the whole definition or region, decorators included."""
        node = self.definition.node
        if self.region:
            return range(self.region.begin, self.region.end + 1)
        return range(begin_line(node), (node.end_lineno or node.lineno) + 1)


class MaskedFunction(NamedTuple):
    """What was masked."""

    name: str
    first_line: int
    body_lines: int
    """Lines from the first statement after the docstring to the last."""
    sha256: str
    """Of the original definition or region, as UTF-8."""
    body: str
    """The original lines."""


class MaskedFile(NamedTuple):
    data: bytes
    functions: list[MaskedFunction]


def mask_file(
    source: PythonSource, targets: Iterable[str], *, stub: Stub = "raise", nested: bool = False
) -> MaskedFile:
    """Replace the bodies of some functions by stubs.

    Args:
        source: the file. All bytes that are not in a body come back unchanged.
        targets: in any order. `Class.method`; `method` if no other function has this name; `function#2` for
            the second of that name; `function@part` for the lines between `# region part` and `# endregion`;
            `function@part.inner` for a region in it.
        stub: what the functions do instead.
        nested: whether targets can be parts of others, which are masked then.

    Raises:
        SourceError: a target is not in the file, has no body to mask, or is a part of another one.
    """
    known = definitions(source)
    found = [target_of(source, known, target, stub) for target in dict.fromkeys(targets)]
    if nested:
        found = outermost(found)
    for one, other in pairwise(sorted(found, key=lambda target: target.edit[:2])):
        if other.edit.first <= one.edit.last:
            raise SourceError(f"{source.name}: `{one.name}` and `{other.name}` overlap")
    masked = source.encode(applied(source, [one.edit for one in found]))
    check(source, masked, found)
    return MaskedFile(masked, [fact(source, one) for one in found])


def target_of(source: PythonSource, known: Sequence[Definition], name: str, stub: Stub) -> Target:
    function, _, region_name = name.partition("@")
    definition = find(source, function, known)
    if region_name:
        region = find_region(source, definition, region_name)
        return Target(definition, region, region_edit(source, definition, region, stub))
    parts, statements = parts_of(source, definition), stub_lines(definition, stub)
    lines = [f"{parts.indent}{one}" for one in statements]
    return Target(definition, None, new_body(source, definition, parts, lines, statements))


def outermost(targets: Sequence[Target]) -> list[Target]:
    """The targets that are not a part of another one."""
    spans = [(one, one.lines) for one in targets]
    return [
        one
        for one, inner in spans
        if not any(inner != outer and inner[0] in outer and inner[-1] in outer for _, outer in spans)
    ]


def check(source: PythonSource, masked: bytes, targets: Sequence[Target]) -> None:
    """Raises SourceError unless the masked file differs in the targets only."""
    lists: Lists = {}
    is_whole = True
    for target in targets:
        node, stub = target.definition.node, parsed("\n".join(target.edit.statements)).body
        if target.region is None:
            docstring = docstring_of(node)
            lists[id(node), "body"] = [docstring, *stub] if docstring else stub
        else:
            is_whole = expect_in_place(lists, node, target.region, stub) and is_whole
    try:
        is_whole = is_whole and are_equal(source.tree, PythonSource.read(source.name, masked).tree, lists)
    except SourceError:
        is_whole = False
    if not is_whole:
        names = ", ".join(f"`{one.name}`" for one in targets)
        raise SourceError(f"{source.name}: masking {names} would change other statements, too")


def fact(source: PythonSource, target: Target) -> MaskedFunction:
    lines, edit = target.lines, target.edit
    original = "".join(source.lines[lines.start - 1 : lines.stop - 1])
    if target.region:
        body = "".join(source.lines[edit.first - 1 : edit.last])
    else:
        body = body_text(source, target.definition.node)
    digest = hashlib.sha256(original.encode()).hexdigest()
    return MaskedFunction(target.name, lines.start, len(body.splitlines()), digest, body)


# What a stub does


def stub_lines(definition: Definition, stub: Stub) -> list[str]:
    """A stub is a generator or a coroutine if its function is one."""
    if stub == "raise":
        lines = [f'raise NotImplementedError("{MESSAGE}")']
    else:
        value = {"none": None, "zero": 0, "first": first_argument(definition)}[stub]
        lines = [f"return {value}"]
    if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in own_nodes(definition.node)):
        # Python allows no value here in an asynchronous generator.
        if stub != "raise" and isinstance(definition.node, ast.AsyncFunctionDef):
            lines = ["return"]
        lines.append("yield")
    return lines


def first_argument(definition: Definition) -> str | None:
    """The name of the first argument after the one that a method is bound to."""
    arguments = definition.node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    if definition.is_method and "staticmethod" not in map(last_name, definition.node.decorator_list):
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


def region_edit(source: PythonSource, definition: Definition, region: Region, stub: Stub) -> Edit:
    """Replace the lines between the marks of a region. Raises SourceError if it has no code."""
    inside = range(region.begin + 1, region.end)
    code = [line for line in inside if (text := source.lines[line - 1].strip()) and text[0] != "#"]
    if not code:
        raise SourceError(f"{source.name}:{region.begin}: there is no code in the region `{region.name}`")
    indent = leading(source.lines[code[0] - 1])
    # Unlike a body, a region may have nothing to return.
    statements = stub_lines(definition, stub) if stub == "raise" else ["pass"]
    text = with_ends(source, definition.node.lineno, [f"{indent}{one}" for one in statements])
    return Edit(inside.start, region.end - 1, text, statements)


# The files of a folder


def masked_files(
    repository: Path, targets: Iterable[str], *, stub: Stub = "raise", nested: bool = False
) -> dict[str, MaskedFile]:
    """The files with functions masked by `mask_file`, by path. Raises SourceError and SuperError."""
    return {
        path: mask_file(PythonSource.read(path, read(repository, path)), names, stub=stub, nested=nested)
        for path, names in by_file(targets).items()
    }


def read(repository: Path, path: str) -> bytes:
    file = repository / path
    try:
        if not file.resolve(strict=True).is_relative_to(repository.resolve()):
            raise SuperError(f"{path}: it is a link to a file outside {repository}")
        return read_bytes(file)
    except FileNotFoundError:
        files = [one.relative_to(repository).as_posix() for one in repository.rglob("*.py")]
        raise SuperError(f"{path}: {repository} has no such file{did_you_mean(path, files)}") from None
    except OSError as error:
        raise SuperError(f"{path}: it cannot be read: {error.strerror}") from None


def write_masked(repository: Path, output: Path | None, masked: dict[str, MaskedFile]) -> None:
    """Write the files; in `output` only after the whole folder is copied."""
    try:
        if output is not None:
            if output.exists():
                raise SuperError(f"{output} exists")
            shutil.copytree(repository, output, symlinks=True)
        for path, file in masked.items():
            replace_content((output or repository) / path, file.data)
    except OSError as error:
        raise SuperError(f"{output or repository} cannot be written: {error.strerror or error}") from None


def replace_content(file: Path, data: bytes) -> None:
    """Replace a file's content at once, so that no kill leaves a part of it; its mode stays."""
    file = file.resolve()
    new = file.with_name(f".{file.name}.masked")
    new.write_bytes(data)
    shutil.copymode(file, new)
    os.replace(new, file)
