"""Which names cells load and bind, to propose what runs before a sub-problem; no files, no packages."""

import ast
import re
import symtable
import warnings
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

# A line of IPython's own, with the name that it may bind: `!ls`, `%pip install x`, `files = !ls`, `%%time`.
_MAGIC_LINE = re.compile(r"^([ \t]*)([\w, \t]+=[ \t]*)?[!%].*$", re.MULTILINE)


class Names(NamedTuple):
    loads: frozenset[str] = frozenset()
    binds: frozenset[str] = frozenset()
    is_opaque: bool = False
    """Whether the cell is more than Python. Names do not show the effects of shell lines and magics."""


def names_of(source: str) -> Names:
    """The names of a cell; none if it is not Python, even without its shell lines and magics."""
    # Python first: a line of a text or of a formula can begin with `!` or `%`.
    if (names := names_of_python(source)) is not None:
        return names
    # A shell line can continue on the next line.
    joined = source.replace("\\\n", " ")
    python = _MAGIC_LINE.sub(lambda match: match[1] + (f"{match[2]}None" if match[2] else "pass"), joined)
    return (names_of_python(python) or Names())._replace(is_opaque=True)


def names_of_python(code: str) -> Names | None:
    """Find the names in code; None if Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = symtable.symtable(code, "cell", "exec")
            changed = set(changed_names(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    symbols = table.get_symbols()
    bound = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
    loaded = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    for scope in table.get_children():
        loaded |= set(global_names(scope))
    return Names(frozenset(loaded), frozenset(bound | changed))


def global_names(scope: symtable.SymbolTable) -> Iterator[str]:
    """Names that a function, class or comprehension takes from the notebook."""
    yield from (symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global())
    for inner in scope.get_children():
        yield from global_names(inner)


def changed_names(module: ast.Module) -> Iterator[str]:
    """`x` of `x.a = 1`, `x[0] = 1` and `del x[0]`: later cells see a changed object."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            base: ast.expr = node
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                yield base.id


def have_fixed_order(earlier: Names, later: Names) -> bool:
    """Whether one of two cells binds a name that the other loads or binds."""
    return not (earlier.binds.isdisjoint(later.loads | later.binds) and later.binds.isdisjoint(earlier.loads))


def independent_cells(cells: Sequence[Names], masked: Collection[int], goal: int) -> list[int]:
    """The cells before `goal`, by index, that can run before the masked ones as far as names show."""
    waiting: list[Names] = []
    prefix = list(range(min(masked)))
    for index in range(min(masked), goal):
        cell = cells[index]
        if cell.is_opaque or (index in masked and not cell.binds):
            # Names do not show its effect, so it and all after it have to wait.
            break
        if index in masked or any(have_fixed_order(one, cell) for one in waiting):
            waiting.append(cell)
        else:
            prefix.append(index)
    return prefix
