"""The files of a paper's code that are copied."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_super.functions.leaks import OLD_FOLDERS, is_old_file
from pytest_super.sources.beside import TASK_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

# In which agents of the published runs worked.
_WORKSPACE = ("agents", "workspace")


class Code(NamedTuple):
    files: dict[str, Path]
    """By their paths in the code."""
    others: list[str]
    """Paths that are not copied: links, and what can contain solutions or old versions of the code."""


def code_of(folder: Path) -> Code:
    found = Code({}, [])
    for top, folders, names in os.walk(folder):
        for name in sorted([*folders, *names]):
            path = Path(top, name)
            shown = path.relative_to(folder).as_posix()
            if is_left_out(path):
                found.others.append(shown)
            elif name in names and path.is_file():
                found.files[shown] = path
        folders[:] = sorted(name for name in folders if not is_left_out(Path(top, name)))
    return found


def is_left_out(path: Path) -> bool:
    return (
        path.is_symlink()
        or path.name in OLD_FOLDERS
        or is_old_file(path.name)
        or path.parts[-2:] == _WORKSPACE
        or path.match(TASK_FILES)
    )


def copied(code: Code, folder: str) -> Iterator[tuple[str, Path]]:
    return ((f"{folder}/{name}", path) for name, path in code.files.items())
