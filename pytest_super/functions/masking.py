"""Masks functions of Python files, and checks that nothing else has changed."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_super.errors import SuperError
from pytest_super.functions.definitions import Definition, definitions, find
from pytest_super.functions.edits import Edit, Lists, applied, are_equal, expect_in_place
from pytest_super.functions.names import by_file, of_file
from pytest_super.functions.source import PythonSource, SourceError, parsed
from pytest_super.functions.spans import Region, begin_line, body_text, docstring_of, find_region
from pytest_super.functions.stub import Docstrings, Stub, body_edit, quoted, region_edit
from pytest_super.reading import read_bytes
from pytest_super.words import did_you_mean

if TYPE_CHECKING:
    import ast


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
    source: PythonSource,
    targets: Iterable[str],
    *,
    docstrings: Docstrings = "keep",
    stub: Stub = "raise",
    nested: bool = False,
) -> MaskedFile:
    """Replace the bodies of some functions by stubs.

    Args:
        source: the file. All bytes that are not in a body come back unchanged.
        targets: in any order. `Class.method`; `method` if no other function has this name; `function#2` for
            the second of that name; `function@part` for the lines between `# region part` and `# endregion`;
            `function@part.inner` for a region in it.
        docstrings: kept, dropped, or replaced by new ones.
        stub: what the functions do instead.
        nested: whether targets can be parts of others, which are masked then.

    Raises:
        SourceError: a target is not in the file, has no body to mask, or is a part of another one.
    """
    known = definitions(source)
    found = [target_of(source, known, target, docstrings, stub) for target in dict.fromkeys(targets)]
    if nested:
        found = outermost(found)
    for one, other in pairwise(sorted(found, key=lambda target: target.edit[:2])):
        if other.edit.first <= one.edit.last:
            raise SourceError(f"{source.name}: `{one.name}` and `{other.name}` overlap")
    masked = source.encode(applied(source, [one.edit for one in found]))
    check(source, masked, found)
    return MaskedFile(masked, [fact(source, one) for one in found])


def target_of(
    source: PythonSource, known: Sequence[Definition], name: str, docstrings: Docstrings, stub: Stub
) -> Target:
    function, _, region_name = name.partition("@")
    definition = find(source, function, known)
    if region_name:
        region = find_region(source, definition, region_name)
        return Target(definition, region, region_edit(source, definition, region, stub))
    if isinstance(docstrings, str):
        docstring: str = docstrings
    elif name in docstrings:
        docstring = quoted(source, definition, docstrings[name])
    else:
        raise SourceError(f"{source.name}: there is no new docstring for `{name}`")
    return Target(definition, None, body_edit(source, definition, docstring, stub))


def outermost(targets: Sequence[Target]) -> list[Target]:
    """The targets that are not a part of another one."""

    def is_part(one: Target, other: Target) -> bool:
        inner, outer = one.lines, other.lines
        return inner != outer and outer.start <= inner.start and inner.stop <= outer.stop

    return [one for one in targets if not any(is_part(one, other) for other in targets)]


def check(source: PythonSource, masked: bytes, targets: Sequence[Target]) -> None:
    """Raises SourceError unless the masked file differs in the targets only."""
    lists: Lists = {}
    is_whole = True
    for target in targets:
        node, stub = target.definition.node, parsed("\n".join(target.edit.statements)).body
        if target.region is None:
            docstring = docstring_of(node) if target.edit.keeps_docstring else None
            lists[id(node), "body"] = [docstring, *stub] if docstring else stub
        else:
            is_whole = expect_in_place(lists, node, target.region, stub) and is_whole
    try:
        tree = PythonSource.read(source.name, masked).tree
        is_whole = is_whole and are_equal(source.tree, tree, lists)
    except SourceError:
        is_whole = False
    if not is_whole:
        names = ", ".join(f"`{one.name}`" for one in targets)
        raise SourceError(f"{source.name}: masking {names} would change other statements, too")
    if any(one.region for one in targets):
        refuse_uncompilable(source, tree)


def refuse_uncompilable(source: PythonSource, tree: ast.Module) -> None:
    """A region can contain the only assignment of a name that a function inside declares `nonlocal`."""
    try:
        compile(source.tree, source.name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return
    try:
        compile(tree, source.name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise SourceError(f"{source.name}: it would not compile after masking: {error}") from None


def fact(source: PythonSource, target: Target) -> MaskedFunction:
    lines, edit = target.lines, target.edit
    original = "".join(source.lines[lines.start - 1 : lines.stop - 1])
    if target.region:
        body = "".join(source.lines[edit.first - 1 : edit.last])
    else:
        body = body_text(source, target.definition.node)
    digest = hashlib.sha256(original.encode()).hexdigest()
    return MaskedFunction(target.name, lines.start, len(body.splitlines()), digest, body)


def masked_files(
    repository: Path,
    targets: Iterable[str],
    *,
    docstrings: Docstrings = "keep",
    stub: Stub = "raise",
    nested: bool = False,
) -> dict[str, MaskedFile]:
    """The files with functions masked by `mask_file`, by path. Raises SourceError and SuperError."""
    return {
        path: mask_file(
            PythonSource.read(path, read(repository, path)),
            names,
            docstrings=docstrings if isinstance(docstrings, str) else of_file(docstrings, path),
            stub=stub,
            nested=nested,
        )
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
