"""The functions of a file by their qualified names."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pytest_super.functions.source import PythonSource, SourceError
from pytest_super.words import did_you_mean

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
OVERLOADS = {"overload", "_overload_method"}


@dataclass(frozen=True, eq=False)
class Definition:
    """A function of a file. `name` is qualified, and ends in `#k` if it is the k-th of that name."""

    name: str
    node: Function
    is_method: bool


def definitions(source: PythonSource) -> list[Definition]:
    """All functions in the order of their lines, without the overloads of typing."""
    found = sorted(_functions(source.tree), key=lambda one: one.node.lineno)
    counts = Counter(one.name for one in found)
    seen: Counter[str] = Counter()
    for index, one in enumerate(found):
        seen[one.name] += 1
        if counts[one.name] > 1:
            found[index] = replace(one, name=f"{one.name}#{seen[one.name]}")
    return found


def _functions(tree: ast.Module) -> Iterator[Definition]:
    # A loop, because chains of `elif` can be deeper than Python's limit of recursion.
    waiting: list[tuple[ast.AST, str, bool]] = [(tree, "", False)]
    while waiting:
        parent, outer, is_class = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, Function | ast.ClassDef):
                name = f"{outer}{node.name}"
                waiting.append((node, f"{name}.", isinstance(node, ast.ClassDef)))
                if isinstance(node, Function) and not is_overload(node):
                    yield Definition(name, node, is_class)
            elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                waiting.append((node, outer, is_class))


def is_overload(node: Function) -> bool:
    # The `overload(f)` of numba, which is called, decorates the only body.
    return any(last_name(one) in OVERLOADS for one in node.decorator_list if not isinstance(one, ast.Call))


def last_name(expression: ast.expr) -> str:
    """`c` of `a.b.c` and of `a.b.c(...)`."""
    if isinstance(expression, ast.Call):
        expression = expression.func
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""


def plain_name(definition: Definition) -> str:
    return definition.name.partition("#")[0]


def bare_name(definition: Definition) -> str:
    return plain_name(definition).rpartition(".")[2]


def named(found: Sequence[Definition]) -> str:
    return ", ".join(f"{one.name} (line {one.node.lineno})" for one in found)


def find(source: PythonSource, name: str, among: Sequence[Definition]) -> Definition:
    """The function with a qualified name, or with a bare name that is unique. Raises SourceError."""
    found = (
        [one for one in among if one.name == name]
        or [one for one in among if plain_name(one) == name]
        or [one for one in among if bare_name(one) == name]
    )
    if len(found) == 1:
        return found[0]
    if found:
        raise SourceError(f"{source.name}: `{name}` is not unique; it can be {named(found)}")
    hint = did_you_mean(name, [one.name for one in among] + [bare_name(one) for one in among], most=3)
    raise SourceError(f"{source.name}: there is no function `{name}` in it{hint}")
