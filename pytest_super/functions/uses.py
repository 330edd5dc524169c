"""Which functions of a folder use which others, and the state that they set for others, as far as names tell.

A function uses another if its body has the other's bare name, whatever stands before a dot. So equal names
of different classes count as one, and calls by `model(x)` or `getattr` are not seen.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pytest_super.functions.source import SEPARATOR, Function, PythonSource, SourceError, definitions, find

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


def side_effects(folder: Path, targets: Collection[str]) -> dict[str, list[str]]:
    """Map targets to `self.x`, `parameter.x`, and `x` for a global; regions have none. Raises SourceError."""
    sources: dict[str, PythonSource] = {}
    read: Counter[str] = Counter()
    scripts = {target.partition(SEPARATOR)[0] for target in targets}
    for name in {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")} | scripts:
        with suppress(SourceError, OSError):
            sources[name] = PythonSource.read(name, (folder / name).read_bytes())
            read.update(names_read(sources[name].tree))
    found: dict[str, list[str]] = {}
    for target in targets:
        file, _, name = target.partition(SEPARATOR)
        node = None if "@" in name else find(sources[file], name, definitions(sources[file])).node
        found[target] = read_elsewhere(node, read) if node else []
    return found


def read_elsewhere(function: Function, read: Counter[str]) -> list[str]:
    """What the function sets and `read`, the names in all files, has more often than itself."""
    own = names_read(function)
    # Other modules can read a global as an attribute of its module.
    forms = {name: (name, f".{name.rpartition('.')[2]}") for name in names_set(function)}
    return [name for name in sorted(forms) if any(read[one] > own[one] for one in forms[name])]


def names_read(node: ast.AST) -> Counter[str]:
    """Names, and attributes with a dot before them."""
    return Counter(
        one.id if isinstance(one, ast.Name) else f".{one.attr}"
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load)
    )


def names_set(function: Function) -> Iterator[str]:
    own = function.args
    parameters = {one.arg for one in (*own.posonlyargs, *own.args, *own.kwonlyargs)}
    nodes = list(ast.walk(function))
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    for node in nodes:
        if isinstance(getattr(node, "ctx", None), ast.Store):
            match node:
                case ast.Name(id=name) if name in shared:
                    yield name
                case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in parameters:
                    yield f"{owner}.{name}"
