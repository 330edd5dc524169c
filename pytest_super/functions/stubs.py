"""The statements that take the place of a masked body."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.functions.definitions import Definition, Function

MESSAGE = "this function is masked"
Stub: TypeAlias = Literal["raise", "none", "zero", "first"]
"""What a stub does: it raises NotImplementedError, or it returns None, 0 or its first argument."""


def stub_lines(definition: Definition, stub: Stub) -> list[str]:
    """A stub is a generator or a coroutine if its function is one."""
    node = definition.node
    lines = [f'raise NotImplementedError("{MESSAGE}")' if stub == "raise" else returned(definition, stub)]
    if is_generator(node):
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


def is_generator(node: Function) -> bool:
    return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in own_nodes(node))


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
