"""What code does to others: the parts of well-known modules that it replaces, and where it ends the process.

And the constants in it. All of it is read from the syntax tree, without running anything.
"""

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from pytest_super.functions.additions import flat
from pytest_super.functions.source import PythonSource, definitions, find, parsed, refusing

# What graders and experiments compute with. Only what a module has is replaced: `time.clock = …` repairs code
# of an older Python.
STANDARD = frozenset({"builtins", "json", "math", "os", "subprocess", "time", "unittest"})
OTHERS = {
    "sys": frozenset({"exit", "modules"}),
    "numpy": frozenset({"allclose", "array_equal", "array_equiv", "isclose"}),
}
# Modules whose classes and functions are guarded at any depth.
WHOLE = ("numpy.testing", "pytest", "unittest")
HELPERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Assign, ast.AnnAssign)
# Of other code than a body, which is not called only to give a value.
HARD_ENDS = frozenset({"os._exit", "os.abort"})
# How deep in each other the texts can be that code executes.
MOST_INNER = 3
ENDS = frozenset({
    "os._exit", "os.abort", "os.kill", "os.killpg", "sys.exit", "builtins.exit", "builtins.quit",
    "signal.raise_signal",
})  # fmt: skip
# What shows or changes more of a process than the code that uses it.
OUTSIDE = frozenset({
    "__main__", "gc.get_objects", "gc.get_referents", "gc.get_referrers", "sys._current_frames",
    "sys.meta_path", "sys.path_hooks", "sys.setprofile", "sys.settrace", "threading.setprofile",
    "threading.settrace",
})  # fmt: skip
# Acts of one kind in one file.
MOST = 20_000
# Bits of a number and characters of a text that are looked at.
MOST_BITS, LONGEST = 200, 2000


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
    outside: list[Act]
    """Where it reaches what is not its own, and objects that equal everything."""


def acts(name: str, original: bytes, changed: bytes, targets: Iterable[str]) -> Acts:
    """`targets` are names of functions and regions as in `masking.mask_file`.

    The original is empty for a file that the agent has made. Raises SourceError; RuntimeError beyond limits.
    """
    # As an import reads them, in any encoding; nothing here needs their texts.
    with refusing(name):
        theirs = PythonSource(name, "", "", parsed(changed, name))
    ours = ast.Module([], [])
    # Code of Python 2, say, which the agent has ported: all of it is new then.
    with suppress(SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        ours = parsed(original, name)
    known = definitions(theirs)
    bodies = [find(theirs, one.partition("@")[0], known).node for one in targets]
    whole, before = list(with_inner(theirs.tree)), list(with_inner(ours))
    # What a body needs is taken over with it.
    helpers = (node for node in flat(theirs.tree.body) if isinstance(node, HELPERS)) if targets else ()
    old = {ast.dump(node) for node in flat(ours.body)}
    fresh = [node for node in helpers if ast.dump(node) not in old]
    within = [tree for node in (*bodies, *fresh) for tree in with_inner(node)]
    names, names_before = names_in(whole), names_in(before)
    hard = (act for act in ends(whole, names) if act.text.removeprefix("calls ") in HARD_ENDS)
    return Acts(
        new(replaced(whole, names), replaced(before, names_before)),
        new({*ends(within, names), *hard}, ends(before, names_before)),
        new(constants(within), constants(before)),
        new(outside(whole, names), outside(before, names_before)),
    )


def with_inner(tree: ast.AST, depth: int = MOST_INNER) -> Iterator[ast.AST]:
    """The tree, and those of the texts that its code executes, at the lines where it does."""
    yield tree
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("exec" | "eval" | "compile"), [ast.Constant(str(text)), *_]):
                if not depth:
                    raise RuntimeError(f"it executes texts that execute texts, {MOST_INNER + 1} times")
                with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                    inner = parsed(text)
                    for one in ast.walk(inner):
                        if hasattr(one, "lineno"):
                            one.lineno = node.lineno
                    yield from with_inner(inner, depth - 1)


def new(found: Iterable[Act], known: Iterable[Act]) -> list[Act]:
    """The acts whose text is not among the known ones."""
    texts = {one.text for one in known}
    acts = sorted({one for one in found if one.text not in texts})
    if len(acts) > MOST:
        raise RuntimeError(f"it does more than {MOST:,} things of one kind")
    return acts


def nodes_of(trees: Iterable[ast.AST]) -> Iterator[ast.AST]:
    return (node for tree in trees for node in ast.walk(tree))


def names_in(trees: Iterable[ast.AST]) -> dict[str, str]:
    """What the names of imports mean, and other names for these."""
    names = {"__builtins__": "builtins", "exit": "builtins.exit", "quit": "builtins.quit"}
    for node in nodes_of(trees):
        if isinstance(node, ast.Import):
            names |= {one.asname or one.name.partition(".")[0]: one.name for one in node.names if one.asname}
            names |= {one.name.partition(".")[0]: one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    for node in nodes_of(trees):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in names:
            names |= {one.id: names[node.value.id] for one in node.targets if isinstance(one, ast.Name)}
    return names


def meaning(node: ast.expr, names: dict[str, str]) -> str:
    """The dotted name that an expression means, by the imports of its file; "" if it means something else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    base = names.get(node.id, "") if isinstance(node, ast.Name) else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        if node.func.id == "__import__":
            base = text_of(node.args[0])
        elif node.func.id == "vars" and (of := meaning(node.args[0], names)):
            base = f"{of}.__dict__"
        elif node.func.id == "getattr" and len(node.args) > 1 and (of := meaning(node.args[0], names)):
            base = f"{of}.{text_of(node.args[1])}"
    return ".".join([base, *reversed(parts)]) if base else ""


def replaced(trees: Iterable[ast.AST], names: dict[str, str]) -> Iterator[Act]:
    for node in nodes_of(trees):
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


def outside(trees: Iterable[ast.AST], names: dict[str, str]) -> Iterator[Act]:
    for node in nodes_of(trees):
        match node:
            case ast.Attribute() | ast.Name() | ast.Call() if (dotted := meaning(node, names)) in OUTSIDE:
                yield Act(node.lineno, f"uses {dotted}")
            case ast.Attribute(attr="f_back" | "f_globals" | "f_locals"):
                yield Act(node.lineno, f"uses {node.attr} of a frame")
            case ast.Subscript(value, ast.Constant("__main__")) if meaning(value, names) == "sys.modules":
                yield Act(node.lineno, "uses __main__")
            case ast.FunctionDef("__eq__", body=[*_, ast.Return(ast.Constant(True))]) if len(node.body) == 1:
                yield Act(node.lineno, "defines objects that equal everything")


def text_of(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def is_guarded(dotted: str) -> bool:
    module, _, name = dotted.rpartition(".")
    if name == "*":
        return module in STANDARD or module in OTHERS or module in WHOLE
    if whole := next((one for one in WHOLE if module == one or module.startswith(f"{one}.")), ""):
        return whole != "unittest" or has(module, name)
    if module in STANDARD:
        return hasattr(import_module(module), name)
    return name in OTHERS.get(module, ())


def is_before(path: str) -> bool:
    """Whether a file of this name is imported instead of a module that graders use."""
    stem = PurePosixPath(path).stem
    return stem in STANDARD or stem in OTHERS or stem in WHOLE


def has(module: str, name: str) -> bool:
    """Whether a class or a module of `unittest` has this: tests of an older Python give it what it lacks."""
    found: Any = import_module("unittest")
    for part in module.split(".")[1:]:
        found = getattr(found, part, None)
    return hasattr(found, name)


def ends(trees: Iterable[ast.AST], names: dict[str, str]) -> Iterator[Act]:
    for node in nodes_of(trees):
        if isinstance(node, ast.Call) and (dotted := meaning(node.func, names)) in ENDS:
            if not is_failing(node):
                yield Act(node.lineno, f"calls {dotted.removeprefix('builtins.')}")
        elif isinstance(node, ast.Raise) and is_exit(node.exc):
            yield Act(node.lineno, "raises SystemExit")


def is_failing(call: ast.Call) -> bool:
    """Whether the program ends as one that has failed, which gives no value."""
    given = call.args[0] if call.args else None
    return isinstance(given, ast.Constant) and given.value not in (0, None, False)


def is_exit(raised: ast.expr | None) -> bool:
    kind = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(kind, ast.Name) and kind.id == "SystemExit"


def constants(trees: Iterable[ast.AST]) -> Iterator[Act]:
    for node in nodes_of(trees):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, float | str) or (isinstance(value, int) and value.bit_length() <= MOST_BITS):
            yield Act(getattr(node, "lineno", 0), str(value)[:LONGEST])
