"""What files with masked functions can contain: the original, a stub, or the original with probes."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class Originals:
    """The files with functions of a paper, read once for all that is done with them."""

    paper: Task
    folder: Path
    """The paper's repository on the host."""
    files: Files

    def stubbed(self, function: MaskableFunction, stub: Stub) -> Files:
        """The originals, with one function replaced by a stub. Raises SuperError."""
        masked = masked_files(self.folder, [function.target], stub=stub)
        return {**self.files, **{path: file.data for path, file in masked.items()}}

    def with_probes(self) -> Files:
        """The originals, in which each function leaves a file next to its own when it is executed.

        Raises SuperError.
        """
        files = dict(self.files)
        functions = self.paper.functions
        marks = {one.target: mark for one, mark in zip(functions, mark_names(self.paper), strict=True)}
        for path, names in by_file(marks).items():
            statements = {name: leave(marks[f"{path}::{name}"]) for name in names}
            files[path] = probed(path, files[path], statements)
        return files


def read_originals(paper: Task) -> Originals:
    """Raises SuperError."""
    assert paper.repository is not None
    folder = fetch(paper.repository, base=paper.folder)
    files = {path: (folder / path).read_bytes() for path in files_of(paper.functions)}
    return Originals(paper=paper, folder=folder, files=files)


def mark_names(paper: Task) -> Sequence[str]:
    return [f"{MARK}-{place}" for place in range(len(paper.functions))]


def leave(mark: str) -> str:
    """A statement that makes an empty file next to the file in which it is."""
    path = "__import__('os').path"
    return f"open({path}.join({path}.dirname({path}.abspath(__file__)), {mark!r}), 'a').close()"
