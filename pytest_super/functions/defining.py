"""Statements that only define: executing one calls nothing."""

from __future__ import annotations

import ast
import builtins
import symtable
from typing import TYPE_CHECKING

from pytest_super.functions.definitions import Function
from pytest_super.functions.source import SourceError, why_unreadable

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Mapping

    from pytest_super.functions.source import PythonSource

HARMLESS = (
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.UnaryOp,
    ast.unaryop,
    ast.expr_context,
)
DECORATORS = frozenset({"staticmethod", "classmethod", "property", "functools.cache", "functools.lru_cache"})
BUILTINS = frozenset(dir(builtins))


def is_harmless(node: ast.AST | None) -> bool:
    """Whether an expression has constants, names and containers of them only. `A | B` is one of types."""
    return node is None or all(
        isinstance(one, HARMLESS) or (isinstance(one, ast.BinOp) and isinstance(one.op, ast.BitOr))
        for one in ast.walk(node)
        if not isinstance(one, ast.BitOr)
    )


def is_harmless_function(node: Function, imported: Mapping[str, str], known: Container[str]) -> bool:
    """Whether its defaults, annotations and decorators are. `imported` has full names by their own ones."""
    arguments = node.args
    values = [*arguments.defaults, *arguments.kw_defaults, node.returns]
    values += [one.annotation for one in ast.walk(arguments) if isinstance(one, ast.arg)]
    return all(map(is_harmless, values)) and all(
        is_harmless_decorator(one, imported, known) for one in node.decorator_list
    )


def is_harmless_decorator(node: ast.expr, imported: Mapping[str, str], known: Container[str]) -> bool:
    arguments: list[ast.expr] = []
    if isinstance(node, ast.Call):
        arguments = [*node.args, *(one.value for one in node.keywords)]
        node = node.func
    if not is_harmless(node):
        return False
    first, dot, rest = ast.unparse(node).partition(".")
    full = f"{imported.get(first, first)}{dot}{rest}"
    is_what_it_says = first in imported or first not in known
    return full in DECORATORS and is_what_it_says and all(map(is_harmless, arguments))


def is_constant(node: ast.stmt) -> bool:
    """Whether it assigns a harmless value to names."""
    if isinstance(node, ast.AnnAssign):
        return is_harmless(node.annotation) and is_harmless(node.value)
    return isinstance(node, ast.Assign) and is_harmless(node.value)


def bound_names(node: ast.stmt) -> list[str]:
    """The names that a definition or an assignment binds; none if it is something else, or also does more."""
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = [one for target in node.targets for one in getattr(target, "elts", [target])]
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    names = [one.id for one in targets if isinstance(one, ast.Name)]
    return names if len(names) == len(targets) else []


def is_new(name: str, known: Collection[str]) -> bool:
    """Whether a name means nothing yet, neither to a file with these names nor to Python."""
    return not (name in known or name in BUILTINS or (name.startswith("__") and name.endswith("__")))


def global_names(source: PythonSource, without: Collection[Function]) -> tuple[set[str], set[str]]:
    """The names that a file uses globally outside of some functions' bodies, and those of them that it binds.

    Raises SourceError if the file cannot be compiled.
    """
    try:
        module = symtable.symtable(source.text, source.name, "exec")
    except SyntaxError as error:
        raise SourceError(f"{source.name}{why_unreadable(error)}") from None
    used = {one.get_name() for one in module.get_symbols()}
    bound = {one.get_name() for one in module.get_symbols() if one.is_assigned() or one.is_imported()}
    for table in inner_tables(module, {one.lineno for one in without}):
        used |= {one.get_name() for one in table.get_symbols() if one.is_global()}
    return used, bound


def inner_tables(module: symtable.SymbolTable, without: Container[int]) -> Iterator[symtable.SymbolTable]:
    waiting = module.get_children()
    while waiting:
        table = waiting.pop()
        if table.get_type() != "function" or table.get_lineno() not in without:
            yield table
            waiting += table.get_children()
