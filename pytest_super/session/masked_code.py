"""The repository of an item of a paper: with all functions masked for the prefix, then with the item's own.

No sandbox of an agent ever has a masked function's original: not before the prefix, whose steps can copy or
compile what is there, and not in a snapshot, which all items of a paper share.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.functions.bounded import refuse_too_large, splice
from pytest_super.functions.calls import call_edges
from pytest_super.functions.names import by_file
from pytest_super.functions.repository import masked_files, write
from pytest_super.functions.source import SourceError
from pytest_super.grading.collected import add_file, contents
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.sources import fetch
from pytest_super.sources.paper import paper_text
from pytest_super.store.json_lines import disk_errors
from pytest_super.tasks.paper import files_of, paper_name
from pytest_super.tasks.paper_item import PaperItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_super.functions.masking import MaskedFile
    from pytest_super.functions.splicing import Spliced
    from pytest_super.kernel.client import Kernel
    from pytest_super.tasks.paper import MaskableFunction
    from pytest_super.tasks.task import Task


def prepare_copy(task: Task) -> None:
    """Mask all functions of a paper in the caller's thread; does nothing for other tasks.

    Python cannot parse in two threads at once, and any code of the main thread can parse while a kernel
    starts in another one. Raises InfrastructureError.
    """
    if isinstance(task, PaperItem) and task.repository is not None:
        folder = fetch(task.repository, base=task.folder)
        all_masked(folder, tuple(one.target for one in task.whole.functions))


@contextmanager
def without_bodies(task: PaperItem, folder: Path) -> Iterator[Path]:
    """A copy of a paper's repository in which all its functions are masked. Raises InfrastructureError."""
    masked = all_masked(folder, tuple(one.target for one in task.whole.functions))
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / folder.name
        with infrastructure():
            write(folder, copy, masked)
        yield copy


@lru_cache(maxsize=16)
def all_masked(folder: Path, targets: tuple[str, ...]) -> dict[str, MaskedFile]:
    """The files with masked functions by path, the same for all items of a paper."""
    with infrastructure():
        return masked_files(folder, targets, nested=True)


def put_item_files(kernel: Kernel, task: Task, base: str | None) -> None:
    """Put the files with masked functions in place, with only the item's functions masked, and the paper.

    After the prefix; does nothing for other tasks. Raises InfrastructureError.
    """
    if not isinstance(task, PaperItem):
        return
    if base is None:
        raise InfrastructureError("an item of a paper needs the kernel that this plugin makes")
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "item.tar"
        with disk_errors(archive), tarfile.open(archive, "w") as tar:
            for path, data, is_executable in item_files(task, base):
                add_file(tar, path, data, is_executable)
        try:
            kernel.unpack(archive, kernel.workdir)
        except (SandboxLostError, OSError) as error:
            raise InfrastructureError(f"the masked files cannot be put into the sandbox: {error}") from error


def item_files(task: PaperItem, base: str) -> Iterator[tuple[str, bytes, bool]]:
    """The path in the working directory, the content, and whether it is executable, of each file."""
    assert task.repository is not None
    beside = task.folder
    folder = fetch(task.repository, base=beside)
    with infrastructure():
        masked = masked_files(folder, [one.target for one in task.functions])
    refuse_changed(task.functions, masked)
    for path in files_of(task.whole.functions):
        file = folder / path
        data = masked[path].data if path in masked else file.read_bytes()
        yield str(PurePosixPath(base) / path), data, os.access(file, os.X_OK)
    if task.paper is not None:
        yield paper_name(task.paper), paper_text(task.paper, beside).encode(), False


@dataclass(frozen=True, kw_only=True)
class Splice:
    """The original files with the bodies that an agent wrote."""

    is_alike: bool
    """Whether Python sees no difference to the agent's files."""
    taken: list[str]
    """What was taken besides the bodies, as `file: name`."""
    left_out: list[str]
    """What else the agent has changed."""


def write_spliced(task: PaperItem, base: str, collected: Path, archive: Path) -> Splice:
    """Write the original files with the bodies of an item's functions from the collected ones.

    Raises SourceError for what the agent did wrong, and InfrastructureError.
    """
    made = original_with_bodies(task, base, collected)
    with disk_errors(archive), tarfile.open(archive, "w") as tar:
        for path, (found, is_executable) in made.items():
            add_file(tar, path, found.data, is_executable)
    return Splice(
        is_alike=all(one.is_alike for one, _ in made.values()),
        taken=[f"{path}: {name}" for path, (one, _) in made.items() for name in one.taken],
        left_out=[f"{path}: {name}" for path, (one, _) in made.items() for name in one.left_out],
    )


def original_with_bodies(task: PaperItem, base: str, collected: Path) -> dict[str, tuple[Spliced, bool]]:
    """By the path of each file, its original with the new bodies, and whether it is executable."""
    assert task.repository is not None
    folder = fetch(task.repository, base=task.folder)
    targets = by_file(one.target for one in task.functions)
    found = {}
    with disk_errors(collected), tarfile.open(collected) as tar:
        entries = {entry.name: entry for entry in tar}
        for file, names in targets.items():
            path = str(PurePosixPath(base) / file)
            if path not in entries:
                raise SourceError(f"{file}: the file is not there")
            original = (folder / file).read_bytes()
            refuse_too_large(file, len(original), entries[path].size)
            made = splice(file, original, contents(tar, entries[path]), names)
            found[path] = made, os.access(folder / file, os.X_OK)
    return found


def refuse_changed(functions: Iterable[MaskableFunction], masked: dict[str, MaskedFile]) -> None:
    """Raises InfrastructureError if a function is not the one that the task file means."""
    found = {(path, one.name): one.sha256 for path, file in masked.items() for one in file.functions}
    for one in functions:
        digest = found.get((one.file, one.name))
        if digest is None:
            names = ", ".join(name for path, name in found if path == one.file)
            raise InfrastructureError(f"{one.target} is not a qualified name: it can be one of {names}")
        if digest != one.sha256:
            raise InfrastructureError(
                f"{one.target} is not the function that the task means: its digest is {digest}"
            )


def facts_of_item(task: Task) -> dict[str, Any] | None:
    """What may make an item of a paper hard; None for other tasks. Raises InfrastructureError."""
    if not isinstance(task, PaperItem):
        return None
    assert task.repository is not None
    folder = fetch(task.repository, base=task.folder)
    targets = [one.target for one in task.functions]
    with infrastructure():
        masked = masked_files(folder, targets)
        edges = call_edges(folder, targets)
    return {
        "paper": task.whole.id,
        "n": len(targets),
        "targets": targets,
        "body_lines": sum(one.body_lines for file in masked.values() for one in file.functions),
        "files": len(masked),
        "calls": edges.direct,
        "calls_over_others": edges.transitive,
        "experiments": len(task.experiments),
        "passages": sum(bool(one.passage.strip()) for one in task.functions),
    }


@contextmanager
def infrastructure() -> Iterator[None]:
    """Raises InfrastructureError for what cannot be masked: the task is wrong, not the agent."""
    try:
        yield
    except InfrastructureError:
        raise
    except SuperError as error:
        raise InfrastructureError(str(error)) from error
