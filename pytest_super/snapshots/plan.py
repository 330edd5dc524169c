"""Which steps of a prefix a snapshot holds, and which of them are run again where it is used."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from pytest_super.masking.dataflow import changes_imports
from pytest_super.masking.effects import Effects
from pytest_super.masking.files import clean, share
from pytest_super.masking.flow import INTERPOLATED, Notebook
from pytest_super.masking.source import SHELL_CELLS, parsed, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_super.masking.source import Parts
    from pytest_super.tasks.task import PreExecuted

# Of magics that leave nothing in the kernel, and that leave the same each time.
INSTALLERS = frozenset({"pip", "conda", "mamba", "uv"})
SETTERS = frozenset({"cd", "pushd", "popd", "env", "set_env", "matplotlib"})
# What may run code, or take from what is there at the time.
ACTS = (
    *(ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.JoinedStr, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
PATH_CALLS = ("sys.path.append", "sys.path.insert")


class Plan(NamedTuple):
    """For the first `length` steps of a prefix."""

    length: int
    replayed: tuple[int, ...]
    """Indices of the cells that leave state in the kernel, to be run again."""


def plan_of(steps: Sequence[PreExecuted]) -> Plan | None:
    """The longest beginning whose state can be made anew; None where a snapshot would spare no step.

    Run again are cells whose text alone says what they leave: they import, define, bind what is written in
    them, or set the folder and the environment. None of them may read or import what a later step changes,
    which it would see too early. In doubt the snapshot ends.
    """
    notebook = Notebook()
    replayed: list[int] = []
    seen: list[Effects] = []
    length = 0
    for index, step in enumerate(steps):
        effects, is_spared = read_step(step, notebook)
        if is_spared:
            if any(comes_too_late(effects, cell) for cell in seen):
                break
            length = index + 1
        elif can_be_replayed(step, effects):
            replayed.append(index)
            seen.append(effects)
        else:
            break
    return Plan(length, tuple(index for index in replayed if index < length)) if length else None


def read_step(step: PreExecuted, notebook: Notebook) -> tuple[Effects, bool]:
    """What the step does, and whether it leaves nothing in the kernel."""
    if step.edit is not None:
        path = frozenset({clean(step.edit.path)})
        return Effects(files_read=path, files_written=path), True
    assert step.cell is not None
    effects = notebook.read(step.cell)
    return effects, not effects.is_opaque and leaves_no_state(step.cell)


def leaves_no_state(source: str) -> bool:
    """Whether a cell has no Python, and no magic but such as work on files."""
    parts = parts_of(source)
    if parts.python is None or not all(isinstance(line, ast.Pass) for line in parts.python.body):
        return False
    magic, *options = source.strip("\n").partition("\n")[0].split() or [""]
    # Options of a shell cell bind what it prints, or let it run on.
    has_options = magic.removeprefix("%%") in SHELL_CELLS and magic.startswith("%%") and bool(options)
    return not has_options and is_told(parts) and all(is_about_files(magic) for magic in parts.magics)


def is_about_files(magic: str) -> bool:
    name, *words = magic.split()
    # Without a variable it only hides the cell's output.
    is_mute_capture = name == "capture" and all(word.startswith("--") for word in words)
    return name == "writefile" or name in INSTALLERS or is_mute_capture


def is_told(parts: Parts) -> bool:
    """Whether shell lines and magics bind nothing, and take nothing from Python but what stands there."""
    texts = [*parts.shell, *parts.magics]
    found = [expression for text in texts for expression, _ in INTERPOLATED.findall(text) if expression]
    modules = [module for module in map(parsed, found) if module is not None]
    return not parts.binds and all(is_plain(module) for module in modules)


def can_be_replayed(step: PreExecuted, effects: Effects) -> bool:
    if effects.files_written or effects.installs or effects.runs or effects.is_opaque:
        return False
    parts = parts_of(step.cell or "")
    if parts.python is None or parts.shell or not is_told(parts):
        return False
    return all(magic.split()[0] in SETTERS for magic in parts.magics) and are_told(parts.python.body)


def are_told(statements: Iterable[ast.stmt]) -> bool:
    return all(map(leaves_what_is_written, statements))


def leaves_what_is_written(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Import():
            return True
        case ast.ImportFrom(names=names):
            return all(name.name != "*" for name in names)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return all(map(is_plain, [statement.args, *statement.decorator_list]))
        case ast.ClassDef(body=body):
            heads = [*statement.bases, *statement.keywords, *statement.decorator_list]
            return all(map(is_plain, heads)) and are_told(body)
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name) for target in targets) and is_plain(value)
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is None or is_plain(value)
        case ast.Expr(value=ast.Call(func=function, args=arguments, keywords=[])):
            return ast.unparse(function) in PATH_CALLS and all(map(is_plain, arguments))
        case ast.Expr(value=value):
            return is_plain(value)
    return False


def is_plain(node: ast.AST) -> bool:
    """Whether it is made of constants, names and operators, without what IPython keeps, such as `_`."""
    return not any(
        isinstance(inner, ACTS) or (isinstance(inner, ast.Name) and inner.id.startswith("_"))
        for inner in ast.walk(node)
    )


def comes_too_late(later: Effects, replayed: Effects) -> bool:
    """Whether a later step changes what the cell used, when it was run for the first time."""
    return (
        share(later.files_written, replayed.files_read)
        or changes_imports(later, replayed, ())
        or bool(later.installs and replayed.modules)
    )
