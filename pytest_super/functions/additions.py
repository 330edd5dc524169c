"""What a changed file has besides the bodies of some functions: what only defines can be taken over."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pytest_super.functions.defining import Import, Scope, bound_by, bound_names, flat, global_names, is_new
from pytest_super.functions.definitions import Function
from pytest_super.functions.edits import Edit, Lists, are_equal, indented, with_ends
from pytest_super.functions.source import PythonSource
from pytest_super.functions.spans import first_line, leading


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
            return type(node)(**{**dict(ast.iter_fields(node)), "names": names}) if names else None
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
