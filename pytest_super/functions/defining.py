"""Statements that only define: executing one calls nothing but some functions that only compute."""

import ast
import builtins
import symtable
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass

from pytest_super.functions.definitions import Function
from pytest_super.functions.source import PythonSource, SourceError, why_unreadable

Import = ast.Import | ast.ImportFrom
HARMLESS = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Set, ast.Dict,
    ast.FormattedValue, ast.Lambda, ast.arguments, ast.arg, ast.keyword,
    ast.unaryop, ast.operator, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
# They call what they are given, or methods of it.
COMPUTING = (ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr, ast.Call)
DECORATORS = frozenset({"staticmethod", "classmethod", "property", "functools.cache", "functools.lru_cache"})
# None of them calls a function that it is given. No function of `math` does, either.
PURE = frozenset({
    "abs", "bool", "dict", "float", "frozenset", "int", "len", "list", "object", "range", "round", "set",
    "str", "sum", "tuple", "collections.namedtuple", "decimal.Decimal", "logging.getLogger", "numpy.array",
    "numpy.finfo", "numpy.log", "numpy.sqrt", "re.compile", "typing.NamedTuple", "typing.TypeVar",
})  # fmt: skip
# Modules whose objects have methods that only compute.
PLAIN = frozenset({"cmath", "math", "scipy", "string", "sys", *(one.partition(".")[0] for one in PURE)})
BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class Scope:
    """What the names of a module mean, and so what its statements do."""

    imported: dict[str, str]
    """The full names of imports; "" for names that depend on a condition."""

    def defines(self, node: ast.stmt) -> bool:
        """Whether a statement, without those in it, only binds names, or is a condition of others that do."""
        handlers = getattr(node, "handlers", ())
        fields = ("args", "returns", "value", "annotation", "test")
        parts = [*(getattr(node, one, None) for one in fields), *(one.type for one in handlers)]
        return (
            (bool(bound_names(node)) or isinstance(node, ast.If | ast.Try | ast.Pass))
            and not isinstance(node, ast.ClassDef)
            # A name for an error is deleted where its handler ends.
            and not any(one.name for one in handlers)
            and all(map(self._is_harmless_decorator, getattr(node, "decorator_list", ())))
            and self.is_harmless(*parts)
        )

    def is_harmless(self, *nodes: ast.AST | None) -> bool:
        """Whether evaluating expressions calls nothing but PURE functions and methods of plain values."""
        waiting = [one for one in nodes if one]
        while waiting:
            one = waiting.pop()
            if not (isinstance(one, HARMLESS) or (isinstance(one, COMPUTING) and self._is_plain(one))):
                return False
            # The body of a lambda is not executed.
            waiting += [one.args] if isinstance(one, ast.Lambda) else ast.iter_child_nodes(one)
        return True

    def _is_plain(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            # One of types.
            return True
        if isinstance(node, ast.Call):
            full = self._full_name(node.func)
            is_of_literal = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant)
            if not (full in PURE or full.startswith("math.") or is_of_literal):
                return False
        names = (one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        return all(self.imported.get(name, "math").partition(".")[0] in PLAIN for name in names)

    def _is_harmless_decorator(self, node: ast.expr) -> bool:
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        inner = (part for one in (*call.args, *call.keywords) for part in ast.walk(one))
        # `lru_cache` would call a function that it is given.
        is_literal = not any(isinstance(part, ast.Name | ast.Lambda | ast.Call) for part in inner)
        return is_literal and self._full_name(call.func) in DECORATORS

    def _full_name(self, node: ast.expr) -> str:
        """The dotted name of an import or a builtin; of anything else none that any import has."""
        first, dot, rest = ast.unparse(node).partition(".")
        full = self.imported.get(first, first if first in BUILTINS and not dot else "")
        return f"{full}{dot}{rest}"


def bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def flat(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """The statements of a block, and those of its `if` and `try`."""
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.If | ast.Try | ast.ExceptHandler):
            yield from flat(ast.iter_child_nodes(node))


def bound_names(node: ast.stmt) -> list[str]:
    """The names that a definition, an import or an assignment binds; none if it also does something else."""
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    if isinstance(node, Import):
        is_special = getattr(node, "module", "") == "__future__" or node.names[0].name == "*"
        return [] if is_special else [bound_by(one) for one in node.names]
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


def global_names(source: PythonSource, without: Collection[Function]) -> set[str]:
    """The names that a file uses globally outside of some functions' bodies. Raises SourceError."""
    try:
        module = symtable.symtable(source.text, source.name, "exec")
    except SyntaxError as error:
        raise SourceError(f"{source.name}{why_unreadable(error)}") from None
    used = {one.get_name() for one in module.get_symbols()}
    for table in inner_tables(module, {one.lineno for one in without}):
        used |= {one.get_name() for one in table.get_symbols() if one.is_global()}
    return used


def inner_tables(module: symtable.SymbolTable, without: Container[int]) -> Iterator[symtable.SymbolTable]:
    waiting = module.get_children()
    while waiting:
        table = waiting.pop()
        if table.get_type() != "function" or table.get_lineno() not in without:
            yield table
            waiting += table.get_children()
