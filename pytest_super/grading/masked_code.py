"""The code of an item of a paper: with all functions masked for the prefix, then with the item's own.

No sandbox of an agent ever has a masked function's original: not before the prefix, whose steps can copy or
compile what is there, and not in a snapshot, which all items of a paper share.
"""

import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.functions.bounded import refuse_too_large, splice
from pytest_super.functions.masking import MaskedFile, masked_files, write_masked
from pytest_super.functions.source import SourceError, by_file
from pytest_super.functions.splicing import Spliced
from pytest_super.functions.uses import call_edges
from pytest_super.grading.changed_code import Original
from pytest_super.grading.collected import add_file, contents
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.client import Kernel
from pytest_super.sources import fetch
from pytest_super.sources.paper import paper_text
from pytest_super.store.json_lines import disk_errors
from pytest_super.tasks.paper import MaskableFunction, paper_name
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Splice:
    """The original files with the bodies that an agent wrote."""

    is_alike: bool
    """Whether Python sees no difference to the agent's files."""
    taken: list[str]
    """What was taken besides the bodies, as `file: name`."""
    left_out: list[str]
    """What else the agent has changed."""


@dataclass(frozen=True, kw_only=True)
class PaperCode:
    """The code of an item of a paper, fetched and masked once for all its sandboxes."""

    item: PaperItem
    folder: Path
    """The paper's repository, whose name is also that of its folder in the working directory."""
    for_prefix: dict[str, MaskedFile]
    """The files with functions of the paper, all of them masked, by path."""
    for_agent: dict[str, MaskedFile]
    """The files with functions of the item, only these masked, by path."""
    paper: bytes | None
    """What the agent reads of the paper."""

    @contextmanager
    def without_bodies(self) -> Iterator[Path]:
        """A copy of the repository in which all functions are masked. Raises InfrastructureError."""
        with tempfile.TemporaryDirectory() as temporary:
            copy = Path(temporary) / self.folder.name
            with infrastructure():
                write_masked(self.folder, copy, self.for_prefix)
            yield copy

    def put(self, kernel: Kernel) -> None:
        """Put the paper and the masked files in place, after the prefix. Raises InfrastructureError."""
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "item.tar"
            with disk_errors(archive), tarfile.open(archive, "w") as tar:
                for path, data, is_executable in self._files():
                    add_file(tar, path, data, is_executable)
            try:
                kernel.files.unpack(archive, kernel.workdir)
            except (SandboxLostError, OSError) as error:
                raise InfrastructureError(
                    f"the masked files cannot be put into the sandbox: {error}"
                ) from error

    def _files(self) -> Iterator[tuple[str, bytes, bool]]:
        """The path in the working directory, the content, and whether it is executable, of each file."""
        for path in self.for_prefix:
            file = self.folder / path
            data = self.for_agent[path].data if path in self.for_agent else file.read_bytes()
            yield self._inside(path), data, os.access(file, os.X_OK)
        if self.item.paper is not None and self.paper is not None:
            yield paper_name(self.item.paper), self.paper, False

    def _inside(self, path: str) -> str:
        return str(PurePosixPath(self.folder.name) / path)

    def originals(self) -> dict[str, Original]:
        """The originals of the files with functions of the item, by path in the working directory."""
        names = by_file(one.target for one in self.item.functions)
        return {
            self._inside(file): Original((self.folder / file).read_bytes(), own)
            for file, own in names.items()
        }

    def write_spliced(self, collected: Path, archive: Path) -> Splice:
        """Write the originals with the collected bodies. Raises SourceError and InfrastructureError."""
        made = self._with_bodies(collected, [one.target for one in self.item.functions])
        with disk_errors(archive), tarfile.open(archive, "w") as tar:
            for path, found in made.items():
                add_file(tar, self._inside(path), found.data, os.access(self.folder / path, os.X_OK))
        return Splice(
            is_alike=all(one.is_alike for one in made.values()),
            taken=[f"{self._inside(path)}: {name}" for path, one in made.items() for name in one.taken],
            left_out=[f"{self._inside(path)}: {name}" for path, one in made.items() for name in one.left_out],
        )

    def with_bodies(self, collected: Path, targets: Iterable[str]) -> dict[str, bytes]:
        """The item's files by their paths inside, with collected bodies of `targets`. See `write_spliced`."""
        made = self._with_bodies(collected, targets)
        return {
            self._inside(path): made[path].data if path in made else (self.folder / path).read_bytes()
            for path in self.item.files
        }

    def _with_bodies(self, collected: Path, targets: Iterable[str]) -> dict[str, Spliced]:
        """The original of each file with the new bodies, by path."""
        found = {}
        with disk_errors(collected), tarfile.open(collected) as tar:
            entries = {entry.name: entry for entry in tar}
            for file, names in by_file(targets).items():
                if (path := self._inside(file)) not in entries:
                    raise SourceError(f"{file}: the file is not there")
                original = (self.folder / file).read_bytes()
                refuse_too_large(file, len(original), entries[path].size)
                found[file] = splice(file, original, contents(tar, entries[path]), names)
        return found

    def facts(self) -> dict[str, Any]:
        """What may make the item hard. Raises InfrastructureError."""
        item = self.item
        targets = [one.target for one in item.functions]
        with infrastructure():
            edges = call_edges(self.folder, targets)
        return {
            "paper": item.whole.id,
            "n": len(targets),
            "targets": targets,
            "body_lines": sum(one.body_lines for file in self.for_agent.values() for one in file.functions),
            "files": len(self.for_agent),
            "calls": edges.direct,
            "calls_over_others": edges.transitive,
            "experiments": len(item.experiments),
            "passages": sum(bool(one.passage.strip()) for one in item.functions),
        }


def prepared_code(task: Task) -> PaperCode | None:
    """The code of an item of a paper, or None for another task. Raises InfrastructureError.

    It is called in the main thread: Python cannot parse in two threads at once, and any code of the main
    thread can parse while a kernel starts in another one.
    """
    if not isinstance(task, PaperItem) or task.repository is None:
        return None
    folder = fetch(task.repository, base=task.folder)
    with infrastructure():
        for_agent = masked_files(folder, [one.target for one in task.functions])
        refuse_changed(task.functions, for_agent)
        return PaperCode(
            item=task,
            folder=folder,
            for_prefix=all_masked(folder, tuple(one.target for one in task.whole.functions)),
            for_agent=for_agent,
            paper=paper_text(task.paper, task.folder).encode() if task.paper else None,
        )


@lru_cache(maxsize=16)
def all_masked(folder: Path, targets: tuple[str, ...]) -> dict[str, MaskedFile]:
    """The files with masked functions by path, the same for all items of a paper."""
    return masked_files(folder, targets, nested=True)


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


@contextmanager
def infrastructure() -> Iterator[None]:
    """Raises InfrastructureError for what cannot be masked: the task is wrong, not the agent."""
    try:
        yield
    except InfrastructureError:
        raise
    except SuperError as error:
        raise InfrastructureError(str(error)) from error
