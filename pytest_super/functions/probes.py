"""Functions that tell that they were executed, and otherwise do what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.functions.definitions import definitions, find
from pytest_super.functions.edits import applied
from pytest_super.functions.regions import find_region
from pytest_super.functions.source import PythonSource
from pytest_super.functions.spans import parts_of
from pytest_super.functions.splicing import body_lines, new_body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_super.functions.definitions import Definition
    from pytest_super.functions.edits import Edit


def probed(name: str, data: bytes, probes: Mapping[str, str]) -> bytes:
    """The file with a statement, one line, at the beginning of the bodies of some functions.

    `probes` has the statement for each target; that of a region is at the beginning of its function. `name`
    is the file's path, for messages. Raises SourceError.
    """
    source = PythonSource.read(name, data)
    known = definitions(source)
    statements: dict[str, list[str]] = {}
    for target, statement in probes.items():
        function, _, region = target.partition("@")
        definition = find(source, function, known)
        if region:
            find_region(source, definition, region)
        statements.setdefault(definition.name, []).append(statement)
    found = {one.name: one for one in known}
    edits = [probe_edit(source, found[one], lines) for one, lines in statements.items()]
    return source.encode(applied(source, edits))


def probe_edit(source: PythonSource, definition: Definition, statements: list[str]) -> Edit:
    parts = parts_of(source, definition)
    lines = [f"{parts.indent}{one}\n" for one in statements]
    return new_body(source, definition, parts, [*lines, *body_lines(source, definition, parts.indent)])
