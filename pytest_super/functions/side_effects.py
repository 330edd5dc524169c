"""The state that functions set and that other code of their folder reads, as far as names tell."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from pytest_super.functions.definitions import Function, definitions, find
from pytest_super.functions.names import SEPARATOR
from pytest_super.functions.source import PythonSource, SourceError


def side_effects(folder: Path, targets: Collection[str]) -> dict[str, list[str]]:
    """Map targets to `self.x`, `parameter.x`, and `x` for a global; regions have none.

    Raises SourceError for a target that is not there.
    """
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
        is_region = "@" in name
        node = None if is_region else find(sources[file], name, definitions(sources[file])).node
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
