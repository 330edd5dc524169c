"""The cells of a notebook followed in order, to what each of them uses and leaves behind."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pytest_super.masking.bare_calls import traits_of_imported
from pytest_super.masking.effects import ENVIRONMENT, FIGURE, FOLDER, OPAQUE, RANDOM, Effects
from pytest_super.masking.files import ANY, clean
from pytest_super.masking.held import Held, changed_arguments, either, held_by
from pytest_super.masking.names import Uses, inner_uses
from pytest_super.masking.sharing import Sharing, sharers
from pytest_super.masking.shell import shell_effects
from pytest_super.masking.source import Parts, parsed, parts_of
from pytest_super.masking.syntax import is_changing, root_of, stored_in
from pytest_super.masking.vocabulary import HARMLESS_MAGICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# `{expression}` and `$name` in shell lines and magics.
INTERPOLATED = re.compile(r"\{([^{}]+)\}|\$([A-Za-z_]\w*)")


def effects_of(cells: Iterable[str]) -> list[Effects]:
    """What each cell does, known by itself and by the cells before it."""
    notebook = Notebook()
    return [notebook.read(cell) for cell in cells]


class Notebook:
    """What is known of the names of a kernel after some of its cells."""

    def __init__(self) -> None:
        self.held: dict[str, Held] = {}
        self.origins: dict[str, str] = {}
        """Of names that are as an import bound them."""
        self.imported: dict[str, str] = {}
        """Where names may be imported from, changed since or not."""
        self.sharing = Sharing()

    def fork(self) -> Notebook:
        """One that reads on from here, and leaves this one as it is."""
        other = Notebook()
        other.held, other.origins = dict(self.held), dict(self.origins)
        other.imported = dict(self.imported)
        other.sharing = Sharing(self.sharing)
        return other

    def read(self, source: str) -> Effects:
        """What a cell does that is run next."""
        parts = parts_of(source)
        if parts.python is None:
            return OPAQUE
        reader = CellReader(self)
        try:
            reader.read(parts)
        except RecursionError:
            return OPAQUE
        effects = reader.effects()
        for name in effects.writes | effects.binds:
            if name in effects.imports:
                self.origins[name] = effects.imports[name]
            else:
                self.origins.pop(name, None)
        return effects


class CellReader:
    """Gathers what one cell does."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.binds: set[str] = set()
        self.imports: dict[str, str] = {}
        self.stored: set[str] = set()
        """Names that are bound by other means than an import."""
        self.modules: set[str] = set()
        self.installs: set[str] = set()
        self.files_read: set[str] = set()
        self.files_written: set[str] = set()
        self.traits: set[str] = set()
        self.depth = 0
        """How many statements hold the one that is read."""

    def read(self, parts: Parts) -> None:
        assert parts.python is not None
        # A cell's shell lines may stand before or after its Python: what they read may be from before both.
        for text in parts.shell:
            self.read_shell(text)
        for text in parts.magics:
            self.read_magic(text)
        self.binds |= self.follow(parts.python.body, set())

    def effects(self) -> Effects:
        imports = {name: origin for name, origin in self.imports.items() if name not in self.stored}
        again = {name for name, origin in imports.items() if self.notebook.origins.get(name) == origin}
        touches_files = bool(self.files_read or self.files_written or "runs" in self.traits)
        figure = {FIGURE} if "draws figures" in self.traits else set()
        return Effects(
            reads=frozenset(
                self.reads
                | ({RANDOM} if "draws" in self.traits else set())
                | ({FOLDER} if touches_files else set())
                | figure
                | ({ENVIRONMENT} if "runs" in self.traits else set())
            ),
            writes=frozenset((self.writes | self.binds | figure) - again),
            binds=frozenset(self.binds),
            imports=imports,
            modules=frozenset(self.modules),
            installs=frozenset(self.installs),
            changes_path="sys.path" in self.traits,
            files_read=frozenset(self.files_read),
            files_written=frozenset(self.files_written),
            runs="runs" in self.traits,
            is_opaque="opaque" in self.traits,
        )

    # Python

    def follow(self, body: Sequence[ast.stmt], bound: set[str]) -> set[str]:
        """Read statements in order; gives the names that are surely bound after them, with `bound`."""
        bound = set(bound)
        self.depth += 1
        for statement in body:
            bound = self.statement(statement, bound)
        self.depth -= 1
        return bound

    def share(self, targets: Sequence[ast.expr], value: ast.expr, *, is_sure: bool) -> None:
        sharing, sources = self.notebook.sharing, set(sharers(value))
        sharing.bind(stored_in(targets), sources, is_sure=is_sure)
        # `a[0] = b` and `a.append(b)`
        sharing.bind({root_of(target) for target in targets} - {""}, sources, is_sure=False)

    def statement(self, node: ast.stmt, bound: set[str]) -> set[str]:
        match node:
            case ast.For() | ast.AsyncFor():
                self.piece([node.iter], [node.target], bound)
                self.share([node.target], node.iter, is_sure=False)
                self.follow(node.body, bound | stored_in([node.target]))
                self.follow(node.orelse, bound)
            case ast.While():
                self.piece([node.test], [], bound)
                self.follow([*node.body, *node.orelse], bound)
            case ast.If():
                self.piece([node.test], [], bound)
                return self.follow(node.body, bound) & self.follow(node.orelse, bound)
            case ast.With() | ast.AsyncWith():
                targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
                self.piece([item.context_expr for item in node.items], targets, bound)
                return self.follow(node.body, bound | stored_in(targets))
            case ast.Try() | ast.TryStar():
                return self.attempt(node, bound)
            case _:
                return self.simple(node, bound)
        return bound

    def attempt(self, node: ast.Try | ast.TryStar, bound: set[str]) -> set[str]:
        after = self.follow([*node.body, *node.orelse], bound)
        for handler in node.handlers:
            named = {handler.name} if handler.name else set()
            self.writes |= named
            self.piece([handler.type] if handler.type else [], [], bound)
            after &= self.follow(handler.body, bound | named)
        return after | self.follow(node.finalbody, bound)

    def simple(self, node: ast.stmt, bound: set[str]) -> set[str]:
        self.piece([node], [], bound)
        match node:
            case ast.Delete():
                return bound - stored_in([node])
            case ast.Assign(targets=targets, value=value):
                self.share(targets, value, is_sure=self.depth == 1)
                return bound | stored_in(targets)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=method), args=arguments)):
                if is_changing(method):
                    self.share([owner], ast.Tuple(arguments), is_sure=False)
            case ast.AnnAssign(value=ast.expr() as value, target=target):
                self.share([target], value, is_sure=self.depth == 1)
                return bound | stored_in([target])
            case (
                ast.Import() | ast.ImportFrom() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef()
            ):
                return bound | stored_in([node])
        return bound

    def piece(self, nodes: list[ast.expr] | list[ast.stmt], targets: list[ast.expr], bound: set[str]) -> None:
        """A simple statement, or the head of one that holds others with what it binds."""
        uses = inner_uses([*nodes, *targets], ())
        self.take(uses, bound)

    def take(self, uses: Uses, bound: set[str]) -> None:
        held = held_by(self.notebook.held, uses.loads)
        objects = {name for name in uses.called | held.writes if name not in self.notebook.origins}
        objects -= {name for name in self.imports if name not in self.stored}
        changed = uses.changes | objects | changed_arguments(self.notebook.held, uses.given)
        changed = self.notebook.sharing.all_with(changed)
        self.reads |= (uses.loads | held.reads | changed) - bound - {RANDOM, FOLDER, ENVIRONMENT}
        self.writes |= uses.stores | changed
        self.imports |= uses.imports
        self.stored |= (uses.stores | changed) - uses.imports.keys()
        self.modules |= uses.modules
        self.traits |= uses.traits | held.traits
        self.take_imported(uses, held)
        self.take_files(uses, held)
        self.remember(uses, held)

    def take_imported(self, uses: Uses, held: Held) -> None:
        imported = self.notebook.imported
        if self.depth == 1:
            for name in uses.stores:
                imported.pop(name, None)
        imported |= uses.imports
        bare = uses.bare | held.bare
        self.traits |= traits_of_imported(origin for name, origin in imported.items() if name in bare)

    def take_files(self, uses: Uses, held: Held) -> None:
        paths = uses.paths | held.paths
        traits = uses.traits | held.traits
        self.files_read |= paths or ({ANY} if "reads files" in traits else set())
        if "writes files" in traits:
            self.files_written |= paths if paths and "unpacks" not in traits else {ANY}
        if "downloads" in traits and not paths:
            self.traits.add("opaque")
        if "runs" in traits:
            self.run_program()

    def run_program(self) -> None:
        self.traits.add("runs")
        self.files_read.add(ANY)
        self.files_written.add(ANY)

    def remember(self, uses: Uses, held: Held) -> None:
        """What will come with the names that are bound here."""
        if not (uses.stores or uses.functions):
            return
        carried = Held(reads=held.reads | uses.late)
        if not uses.is_data:
            carried.paths = uses.paths | held.paths
            carried.writes, carried.traits = held.writes, set(held.traits)
            carried.bare = set(held.bare)
        for name in uses.stores:
            found = uses.functions.get(name, carried)
            before = self.notebook.held.get(name) if self.depth > 1 else None
            self.notebook.held[name] = either(found, before) if before else found

    # Shell and magics

    def read_shell(self, text: str) -> None:
        self.interpolate(text)
        effects = shell_effects(text)
        self.files_read |= effects.reads
        self.files_written |= effects.writes
        self.installs |= effects.installs
        if effects.runs:
            self.run_program()

    def interpolate(self, text: str) -> None:
        """Python's names in shell text: `{name}` and `$name`."""
        for expression, name in INTERPOLATED.findall(text):
            module = parsed(expression or name)
            if module is not None:
                self.piece(list(module.body), [], set())

    def read_magic(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        self.interpolate(rest)
        if name == "writefile":
            self.files_written.add(clean(rest.removeprefix("-a ").strip()))
        elif name in ("pip", "conda", "mamba", "uv", "sx", "system", "sc"):
            self.read_shell(text if name in ("pip", "conda", "mamba", "uv") else rest)
        elif name in ("cd", "pushd", "popd"):
            self.writes.add(FOLDER)
        elif name in ("env", "set_env"):
            self.writes |= {ENVIRONMENT} if rest else set()
        elif name == "capture":
            self.writes |= set(re.findall(r"\b[A-Za-z_]\w*", rest))
        elif name not in HARMLESS_MAGICS:
            self.traits.add("opaque")
