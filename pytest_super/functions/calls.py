"""Which functions of a folder use which others, as far as names tell.

A function uses another if its body has the other's bare name, whatever stands before a dot. So equal names
of different classes count as one, and calls by `model(x)` or `getattr` are not seen.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pytest_super.functions.definitions import definitions
from pytest_super.functions.names import SEPARATOR
from pytest_super.functions.source import PythonSource, SourceError

Uses: TypeAlias = "dict[str, set[str]]"
"""Names that functions use, by the functions' targets."""


class Edges(NamedTuple):
    """How many ordered pairs of functions there are of which the first uses the second."""

    direct: int
    transitive: int
    """Also over other functions of the folder."""


def call_edges(folder: Path, targets: Sequence[str]) -> Edges:
    """The edges among some functions of a folder, whose files are not changed meanwhile."""
    uses = uses_in(folder)
    by_name: Uses = defaultdict(set)
    for target, names in uses.items():
        by_name[bare(target)] |= names
    plain = [target.partition("@")[0] for target in targets]
    pairs = [(one, other) for one in plain for other in plain if one != other]
    direct = sum(bare(other) in uses.get(one, ()) for one, other in pairs)
    reached = {one: reachable(by_name, uses.get(one, ())) for one in plain}
    return Edges(direct, sum(bare(other) in reached[one] for one, other in pairs))


def reachable(by_name: Mapping[str, set[str]], names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += by_name.get(name, ())
    return found


def bare(target: str) -> str:
    return target.rpartition(SEPARATOR)[2].partition("#")[0].rpartition(".")[2]


@lru_cache(maxsize=4)
def uses_in(folder: Path) -> Uses:
    """Files that cannot be parsed have no functions."""
    found: Uses = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        try:
            source = PythonSource.read(name, path.read_bytes())
        except (SourceError, OSError):
            continue
        for one in definitions(source):
            found[f"{name}{SEPARATOR}{one.name}"] = names_in(one.node)
    defined = {bare(target) for target in found}
    return {target: names & defined for target, names in found.items()}


def names_in(node: ast.AST) -> set[str]:
    return {
        one.id if isinstance(one, ast.Name) else one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    }
