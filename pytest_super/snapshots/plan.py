"""Which steps of a prefix a snapshot holds, and which of them are run again where it is used."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from pytest_super.masking.dataflow import changes_imports
from pytest_super.masking.effects import Effects
from pytest_super.masking.files import clean, share
from pytest_super.masking.flow import Notebook
from pytest_super.masking.source import parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.task import PreExecuted

# Of magics that leave nothing in the kernel.
INSTALLERS = frozenset({"pip", "conda", "mamba", "uv"})


class Plan(NamedTuple):
    """For the first `length` steps of a prefix."""

    length: int
    replayed: tuple[int, ...]
    """Indices of the cells that leave state in the kernel, to be run again."""


def plan_of(steps: Sequence[PreExecuted]) -> Plan | None:
    """The longest beginning whose state can be made anew; None where a snapshot would spare no step.

    A cell can be run again when it writes no file and installs nothing, and when nothing that it reads or
    imports is changed by a later step, which it would see too early. In doubt it can not.
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
        elif can_be_replayed(effects):
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
    return all(is_about_files(magic) for magic in parts.magics)


def is_about_files(magic: str) -> bool:
    name, *words = magic.split()
    # Without a variable it only hides the cell's output.
    is_mute_capture = name == "capture" and all(word.startswith("--") for word in words)
    return name == "writefile" or name in INSTALLERS or is_mute_capture


def can_be_replayed(effects: Effects) -> bool:
    return not (effects.files_written or effects.installs or effects.runs or effects.is_opaque)


def comes_too_late(later: Effects, replayed: Effects) -> bool:
    """Whether a later step changes what the cell used, when it was run for the first time."""
    return share(later.files_written, replayed.files_read) or changes_imports(later, replayed, ())
