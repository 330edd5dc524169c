"""What code does to others: the parts of well-known modules that it replaces, and where it ends the process.

And the constants in it. All of it is read from the syntax tree, without running anything.
"""

from __future__ import annotations

import ast
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from pytest_super.functions.definitions import definitions, find
from pytest_super.functions.source import PythonSource, codec
from pytest_super.functions.splicing import ENCODINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What graders and experiments compute with. Only what a module has is replaced: `time.clock = …` repairs code
# of an older Python.
STANDARD = frozenset({"builtins", "json", "math", "os", "random", "subprocess", "time", "unittest"})
OTHERS = {
    "sys": frozenset({"exit", "modules"}),
    "numpy": frozenset({"allclose", "array_equal", "array_equiv", "isclose"}),
}
# Modules whose classes and functions are guarded at any depth.
WHOLE = ("numpy.testing", "pytest", "unittest")
ENDS = frozenset({
    "os._exit", "os.abort", "os.kill", "os.killpg", "sys.exit", "builtins.exit", "builtins.quit",
    "signal.alarm", "signal.raise_signal",
})  # fmt: skip
# Acts of one kind in one file.
MOST = 2000


class Act(NamedTuple):
    """Something that code does."""

    line: int
    text: str


class Acts(NamedTuple):
    """What a file does that its original does not."""

    replaced: list[Act]
    ends: list[Act]
    """Where some of its functions end the process."""
    constants: list[Act]
    """The constants in these functions."""


def acts(name: str, original: bytes, changed: bytes, targets: Iterable[str]) -> Acts:
    """`targets` are names of functions and regions as in `masking.mask_file`. Raises SourceError.

    The original is empty for a file that the agent has made.
    """
    ours = PythonSource.read(name, original)
    theirs = PythonSource.read(name, changed, {*ENCODINGS, codec(ours.encoding)})
    known = definitions(theirs)
    bodies = [find(theirs, one.partition("@")[0], known).node for one in targets]
    return Acts(
        new(replaced(theirs.tree, names_in(theirs.tree)), replaced(ours.tree, names_in(ours.tree))),
        new(
            (one for body in bodies for one in ends(body, names_in(theirs.tree))),
            ends(ours.tree, names_in(ours.tree)),
        ),
        new((one for body in bodies for one in constants(body)), constants(ours.tree)),
    )


def new(found: Iterable[Act], known: Iterable[Act]) -> list[Act]:
    """The acts whose text is not among the known ones."""
    texts = {one.text for one in known}
    return sorted(one for one in found if one.text not in texts)[:MOST]


def names_in(tree: ast.Module) -> dict[str, str]:
    """What the names of a file's imports mean."""
    names = {"__builtins__": "builtins", "exit": "builtins.exit", "quit": "builtins.quit"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {one.asname or one.name.partition(".")[0]: one.name for one in node.names if one.asname}
            names |= {one.name.partition(".")[0]: one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return names


def meaning(node: ast.expr, names: dict[str, str]) -> str:
    """The dotted name that an expression means, by the imports of its file; "" if it means something else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not (isinstance(node, ast.Name) and node.id in names):
        return ""
    return ".".join([names[node.id], *reversed(parts)])


def replaced(tree: ast.AST, names: dict[str, str]) -> Iterator[Act]:
    for node in ast.walk(tree):
        for dotted in replaced_by(node, names):
            if is_guarded(dotted):
                yield Act(getattr(node, "lineno", 0), f"replaces {dotted}")


def replaced_by(node: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """The dotted names that a statement or a call sets or deletes."""
    if isinstance(node, ast.Call):
        does = node.func.id if isinstance(node.func, ast.Name) else ""
        if does in ("setattr", "delattr") and len(node.args) > 1:
            yield f"{meaning(node.args[0], names)}.{text_of(node.args[1])}"
    # The context is that of a target, wherever it is in an assignment, a loop or a `with`.
    elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield meaning(node, names)
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        base, key = meaning(node.value, names), text_of(node.slice)
        if base == "sys.modules":
            yield f"{key}.*"
        elif base.endswith(".__dict__") or base == "builtins":
            yield f"{base.removesuffix('.__dict__')}.{key}"


def text_of(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def is_guarded(dotted: str) -> bool:
    module, _, name = dotted.rpartition(".")
    if name == "*":
        return module in STANDARD or module in OTHERS or module in WHOLE
    if module.startswith(WHOLE):
        return True
    if module in STANDARD:
        return hasattr(import_module(module), name)
    return name in OTHERS.get(module, ())


def ends(tree: ast.AST, names: dict[str, str]) -> Iterator[Act]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (dotted := meaning(node.func, names)) in ENDS:
            yield Act(node.lineno, f"calls {dotted.removeprefix('builtins.')}")
        elif isinstance(node, ast.Raise) and is_exit(node.exc):
            yield Act(node.lineno, "raises SystemExit")


def is_exit(raised: ast.expr | None) -> bool:
    kind = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(kind, ast.Name) and kind.id == "SystemExit"


def constants(tree: ast.AST) -> Iterator[Act]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            yield Act(node.lineno, str(node.value)[:200])
