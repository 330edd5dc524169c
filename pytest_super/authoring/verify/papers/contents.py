"""What files with masked functions can contain: the original, a stub, or the original with probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.functions.names import by_file
from pytest_super.functions.probes import probed
from pytest_super.functions.repository import masked_files
from pytest_super.sources import fetch
from pytest_super.tasks.paper import files_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_super.functions.stubs import Stub
    from pytest_super.tasks.paper import MaskableFunction
    from pytest_super.tasks.task import Task

    Files = dict[str, bytes]
    """Contents by path in the repository."""

MARK = ".executed"


def folder_of(paper: Task) -> Path:
    """The paper's repository on the host. Raises SuperError."""
    assert paper.repository is not None
    return fetch(paper.repository, base=paper.folder)


def originals(paper: Task) -> Files:
    folder = folder_of(paper)
    return {path: (folder / path).read_bytes() for path in files_of(paper.functions)}


def stubbed(paper: Task, function: MaskableFunction, stub: Stub) -> Files:
    """The originals, with one function replaced by a stub. Raises SuperError."""
    masked = masked_files(folder_of(paper), [function.target], stub=stub)
    return {**originals(paper), **{path: file.data for path, file in masked.items()}}


def with_probes(paper: Task) -> Files:
    """The originals, in which each function leaves a file next to its own when it is executed.

    Raises SuperError.
    """
    files = originals(paper)
    marks = {one.target: mark for one, mark in zip(paper.functions, mark_names(paper), strict=True)}
    for path, names in by_file(marks).items():
        statements = {name: leave(marks[f"{path}::{name}"]) for name in names}
        files[path] = probed(path, files[path], statements)
    return files


def mark_names(paper: Task) -> Sequence[str]:
    return [f"{MARK}-{place}" for place in range(len(paper.functions))]


def leave(mark: str) -> str:
    """A statement that makes an empty file next to the file in which it is."""
    path = "__import__('os').path"
    return f"open({path}.join({path}.dirname({path}.abspath(__file__)), {mark!r}), 'a').close()"
