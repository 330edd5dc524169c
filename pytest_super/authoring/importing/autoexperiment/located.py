"""The recorded functions, found anew in the code: their recorded lines can belong to another state of it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from pathlib import Path

from pytest_super.authoring.importing.autoexperiment.records import FunctionRecord
from pytest_super.functions.masking import mask_file, read
from pytest_super.functions.source import (
    SEPARATOR,
    Definition,
    PythonSource,
    SourceError,
    by_file,
    definitions,
    named,
)
from pytest_super.words import did_you_mean


def locate(record: FunctionRecord, code: Path, files: Collection[str]) -> tuple[str, str]:
    """Target and digest of a function in `files`, which an agent gets. Raises SuperError unless one fits."""
    ((path, _),) = by_file([f"{record.file}{SEPARATOR}{record.name}"]).items()
    source = PythonSource.read(path, read(code, path))
    if path not in files:
        raise SourceError(f"{path}: this file is not copied, because it is a link or an old version")
    chosen = nearest(source, record, functions_named(source, record.name))
    (masked,) = mask_file(source, [chosen.name]).functions
    return f"{path}{SEPARATOR}{chosen.name}", masked.sha256


def functions_named(source: PythonSource, name: str) -> list[Definition]:
    """The functions with this bare or qualified name. Raises SourceError if there is none."""
    known = definitions(source)
    if found := [one for one in known if name in (one.plain_name, one.bare_name)]:
        return found
    if any(isinstance(node, ast.ClassDef) and node.name == name for node in ast.walk(source.tree)):
        raise SourceError(f"{source.name}: `{name}` is a class, not a function")
    hint = did_you_mean(name, [one.bare_name for one in known], most=3)
    raise SourceError(f"{source.name}: there is no function `{name}` in it{hint}")


def nearest(source: PythonSource, record: FunctionRecord, candidates: Sequence[Definition]) -> Definition:
    """The candidate with most of the recorded lines, else the nearest. Raises SourceError for several."""
    if len(candidates) == 1:
        return candidates[0]
    header = record.header_line
    if header is not None:
        lines = range(header, max(header, record.line_end or 0) + 1)
        among = sharing(lines, candidates) or in_class(source, lines, candidates) or candidates
        distances = [abs(one.node.lineno - header) for one in among]
        if distances.count(min(distances)) == 1:
            return among[distances.index(min(distances))]
    why = f"is not unique, and the recorded lines choose none of {named(candidates)}"
    raise SourceError(f"{source.name}: `{record.name}` {why}")


def sharing(lines: range, candidates: Sequence[Definition]) -> Sequence[Definition]:
    """The candidates that have most of these lines, none if no candidate has any."""
    shares = [shared(lines, lines_of(one.node)) for one in candidates]
    most = max(shares)
    return [one for one, share in zip(candidates, shares, strict=True) if most and share == most]


def in_class(source: PythonSource, lines: range, candidates: Sequence[Definition]) -> Sequence[Definition]:
    """The candidates in the class that has most of these lines; in the innermost one of several."""
    classes = (node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef))
    around = [node for node in classes if shared(lines, lines_of(node))]
    for node in sorted(around, key=lambda one: (shared(lines, lines_of(one)), one.lineno), reverse=True):
        if found := [one for one in candidates if one.node.lineno in lines_of(node)]:
            return found
    return []


def shared(one: range, other: range) -> int:
    return max(0, min(one.stop, other.stop) - max(one.start, other.start))


def lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
