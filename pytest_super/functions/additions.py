"""What a changed file has besides the bodies of some functions: what only defines can be taken over."""

import ast
import builtins
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_super.functions.source import Function, Lists, PythonSource, are_equal, global_names
from pytest_super.functions.spans import Edit, first_line, indented, leading, with_ends

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
            return True  # One of types.
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


class Additions:
    """Compares a changed file with its original, and takes over what is new and only defines.

    These are imports, functions and assignments of constants at the top level, also below `if` and `try`, and
    methods of a class that has a target. Their names must be new to the file and to Python, and `Scope` says
    what executing them can call.
    """

    def __init__(
        self, ours: PythonSource, theirs: PythonSource, targets: Sequence[Function], lists: Lists
    ) -> None:
        """`lists` has the targets' expected bodies, and gets what else is expected. Raises SourceError."""
        self.taken: list[str] = []
        """Names."""
        self.left_out: list[str] = []
        """What else is not as in the original: names, or `line N` of the changed file."""
        self.edits: list[Edit] = []
        """They insert what is taken over."""
        self._ours, self._theirs, self._targets, self._lists = ours, theirs, targets, lists
        self._used = global_names(ours, targets)
        self._attributes = {one.attr for one in ast.walk(ours.tree) if isinstance(one, ast.Attribute)}
        imports = (one for one in flat(ours.tree.body) if isinstance(one, Import))
        self._imports = [part for one in imports for part in parts_of(one)]
        self._imported = {name: full for one in self._imports for name, full in full_names(one)}
        self._scope = Scope(self._imported)
        self._read_module()

    def _read_module(self) -> None:
        own = self._ours.tree.body
        before: defaultdict[int, list[ast.stmt]] = defaultdict(list)
        at = first = len(list(beginning(own)))
        for node in self._theirs.tree.body:
            if (place := self._recognised(node, own, at, "")) is not None:
                at = max(place + 1, first)
            elif new := self._definition(node):
                before[fresh_line(own, at)].append(new)
        for place, statements in before.items():
            self._insert(own, place, statements, "")

    def _recognised(self, node: ast.stmt, own: Sequence[ast.stmt], at: int, outer: str) -> int | None:
        """The place, probably `at`, of the original's statement that this one is; None for a new one."""
        places: list[int] = [*range(at, len(own)), *range(at)]
        for place in places:
            if are_equal(own[place], node, self._lists):
                return place
        for place, one in enumerate(own):
            if self._is_version_of(node, one):
                if isinstance(one, ast.ClassDef) and isinstance(node, ast.ClassDef):
                    self._read_class(one, node, f"{outer}{one.name}.")
                else:
                    self.left_out.append(f"{called(node, outer)} outside of its body")
                return place
        return None

    def _is_version_of(self, node: ast.stmt, one: ast.stmt) -> bool:
        """Whether it is a function or class of the original that is a target, or has one."""
        return (
            isinstance(one, Function | ast.ClassDef)
            and isinstance(node, type(one))
            and node.name == one.name
            and self._has_target(one)
        )

    def _has_target(self, node: ast.stmt) -> bool:
        inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        return any(one.lineno in inside for one in self._targets)

    def _read_class(self, own: ast.ClassDef, other: ast.ClassDef, outer: str) -> None:
        methods: list[ast.stmt] = []
        known = {name for one in own.body for name in bound_names(one)} | self._attributes | self._used
        for node in other.body:
            if self._recognised(node, own.body, 0, outer) is not None or is_text(node):
                continue
            if isinstance(node, Function) and is_new(node.name, known) and self._scope.defines(node):
                methods.append(node)
                self.taken.append(f"{outer}{node.name}")
            else:
                self.left_out.append(called(node, outer))
        if methods:
            place, member = next((n, one) for n, one in enumerate(own.body) if self._has_target(one))
            self._insert(own.body, place, methods, leading(self._ours.lines[member.lineno - 1]))

    def _definition(self, node: ast.stmt) -> ast.stmt | None:
        """The part of a new statement that is taken over."""
        parts = parts_of(node) if isinstance(node, Import) else [node]
        new = [one for one in parts if not any(are_equal(one, own, {}) for own in self._imports)]
        taken = [one for one in new if self._takes(one)]
        if isinstance(node, Import):
            names = [alias for one in taken if isinstance(one, Import) for alias in one.names]
            node = type(node)(**{**dict(ast.iter_fields(node)), "names": names})
        return node if taken else None

    def _takes(self, node: ast.stmt) -> bool:
        """Whether it, with the statements in it, does nothing but bind names that are new."""
        inner = list(flat([node]))
        pairs = [pair for one in inner for pair in full_names(one)]
        # What is taken over can come in another order, so that no name gets two meanings.
        used = self._used.union(self.taken)
        # `import scipy.stats` binds `scipy`, which can be there by another such import.
        are_new = all(
            is_new(name, used) for name, full in pairs if not full or self._imported.get(name) != full
        )
        takes = bool(pairs) and are_new and all(map(self._scope.defines, inner))
        if takes:
            self.taken += dict(pairs)
            is_block = isinstance(node, ast.If | ast.Try)
            self._imported |= {name: "" if is_block else full for name, full in pairs if is_block or full}
        elif not is_text(node):
            self.left_out.append(ast.unparse(node) if isinstance(node, Import) else called(node))
        return takes

    def _insert(self, own: list[ast.stmt], place: int, statements: list[ast.stmt], indent: str) -> None:
        """Insert statements before one of the original, or at the end."""
        ours = self._ours
        line = first_line(ours, own[place]) if place < len(own) else len(ours.lines) + 1
        lines = [text for one in statements for text in self._lines(one, indent)]
        text = with_ends(ours, own[0].lineno, lines)
        if place == len(own) and not ours.lines[-1].endswith(("\r", "\n")):
            text = ours.line_end(own[0].lineno) + text
        self.edits.append(Edit(line, line - 1, text, ()))
        (holder,) = (one for one in ast.walk(ours.tree) if getattr(one, "body", None) is own)
        expected = self._lists.setdefault((id(holder), "body"), list(own))
        # Others can have been inserted before.
        at = expected.index(own[place]) if place < len(own) else len(expected)
        expected[at:at] = statements

    def _lines(self, node: ast.stmt, indent: str) -> Sequence[str]:
        if not isinstance(node, Function):
            return [ast.unparse(node)]
        lines = self._theirs.lines[first_line(self._theirs, node) - 1 : node.end_lineno]
        return lines if leading(lines[0]) == indent else indented(lines, indent)


def beginning(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that Python wants before all others: the docstring and imports from `__future__`."""
    for place, one in enumerate(body):
        is_future = isinstance(one, ast.ImportFrom) and one.module == "__future__"
        if not is_future and not (place == 0 and is_text(one)):
            return
        yield one


def fresh_line(body: Sequence[ast.stmt], place: int) -> int:
    """The next place at which a statement begins a line: others can follow it after a semicolon."""
    while 0 < place < len(body) and body[place].lineno <= (body[place - 1].end_lineno or 0):
        place += 1
    return place


def is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def called(node: ast.stmt, outer: str = "") -> str:
    """How a statement is called in messages."""
    return ", ".join(f"{outer}{name}" for name in bound_names(node)) or f"line {node.lineno}"


def parts_of(node: Import) -> Iterator[Import]:
    """An import of one name for each of several."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield ast.Import([alias])
        else:
            yield ast.ImportFrom(node.module, [alias], node.level)


def full_names(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """The names that a statement binds, with what they mean if it is an import."""
    if not isinstance(node, Import):
        yield from ((name, "") for name in bound_names(node))
        return
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield bound_by(alias), f"{'.' * node.level}{node.module}.{alias.name}"
        else:
            yield bound_by(alias), alias.name if alias.asname else alias.name.partition(".")[0]


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
