"""What comes out of the agent's sandbox: files, as bytes, in an archive that is stored with the trial."""

import errno
import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.files import READ_LIMIT, Digests, FileDigest
from pytest_super.reading import open_regular
from pytest_super.store.json_lines import disk_errors
from pytest_super.tasks.grade import EVERYTHING, Grade

Files = Mapping[str, FileDigest]
"""Regular files of a sandbox by their paths: relative to its working directory, or absolute."""

MOST_FILES = 10_000
MOST_BYTES = READ_LIMIT
# How long the files that stay behind are compared.
COMPARE_SECONDS = 10.0
# Most of their names that are kept.
MOST_CHANGED = 100
# Their changes say nothing about an agent.
IGNORED = frozenset({".git", "__pycache__", ".ipynb_checkpoints", ".pytest_cache"})
MEBIBYTE = 2**20


class CollectionError(Exception):
    """What should be collected cannot be, by the agent's own doing; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What came out of the agent's sandbox."""

    archive: Path
    files: Files
    """The files in the archive."""
    others: Files | None
    """The other files of the working directory, which stay behind; None if they are too many."""


def paths_of(grade: Grade, base: str) -> list[str]:
    """What the grader collects. `base` is the folder of the provided repository, or an empty text."""
    if grade.collect == EVERYTHING:
        return [""]
    return [placed(path, base) for path in grade.collect or ()]


def placed(path: str, base: str) -> str:
    """A path of a task's grader, relative to the working directory or absolute."""
    return str(PurePosixPath(base) / path)


def collect(kernel: Kernel, paths: Iterable[str], archive: Path) -> Collected:
    """Kill everything, and archive the files at `paths`. Raises CollectionError and InfrastructureError."""
    kernel.kill()
    try:
        found = {name: file for path in paths for name, file in files_at(kernel, path).items()}
        # It would run in place of the text that is read.
        files = {name: file for name, file in found.items() if not name.endswith((".pyc", ".pyo"))}
        check_bounds(files)
        write_archive(kernel, files, archive)
        everything = files_below_workdir(kernel)
    except SandboxLostError as lost:
        raise CollectionError(f"the sandbox was lost: {lost.detail}") from None
    except OSError as error:
        raise CollectionError(unreadable(error)) from None
    others = everything and {name: file for name, file in everything.items() if name not in files}
    return Collected(archive=archive, files=files, others=others)


def files_at(kernel: Kernel, path: str) -> dict[str, FileDigest]:
    """The regular files at or below a path. Raises CollectionError, SandboxLostError and OSError."""
    try:
        digests = kernel.files.digests(inside(kernel, path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise CollectionError(f"{path} is a link, which is not collected") from None
    if not digests.is_complete:
        raise CollectionError(f"{path or 'the working directory'} has too many or too large files")
    return named(digests, path)


def files_below_workdir(kernel: Kernel) -> Files | None:
    """List the files; None if they are too many or too large. Raises SandboxLostError and OSError."""
    digests = kernel.files.digests(kernel.workdir, seconds=COMPARE_SECONDS)
    return named(digests, "") if digests.is_complete else None


def named(digests: Digests, path: str) -> dict[str, FileDigest]:
    return {str(PurePosixPath(path) / file.name): file for file in digests.files}


def inside(kernel: Kernel, path: str) -> str:
    """The absolute path in the sandbox."""
    return str(PurePosixPath(kernel.workdir) / path)


def check_bounds(files: Files) -> None:
    size = sum(file.size for file in files.values())
    if len(files) > MOST_FILES:
        raise CollectionError(f"there are {len(files):,} files to collect, more than {MOST_FILES:,}")
    if size > MOST_BYTES:
        raise CollectionError(
            f"the files to collect have {size / MEBIBYTE:,.0f} MiB, more than {MOST_BYTES / MEBIBYTE:,.0f}"
        )


def write_archive(kernel: Kernel, files: Files, archive: Path) -> None:
    """Piece by piece. Raises CollectionError, SandboxLostError, and InfrastructureError for a full disk."""
    # An archive of this name is complete, so that it can be graded again.
    incomplete = archive.with_suffix(".incomplete")
    with disk_errors(archive.parent):
        with tarfile.open(incomplete, "w") as tar:
            for path, file in files.items():
                pieces = Pieces(pieces_of(kernel, path, file.size))
                add_member(tar, path, file.size, io.BufferedReader(pieces), file.is_executable)
        incomplete.replace(archive)


def pieces_of(kernel: Kernel, path: str, size: int) -> Iterator[bytes]:
    """Raises CollectionError and SandboxLostError, not OSError, which is that of the archive."""
    try:
        yield from kernel.files.read_pieces(inside(kernel, path), size)
    except OSError as error:
        raise CollectionError(unreadable(error)) from None


def unreadable(error: OSError) -> str:
    return f"its files cannot be read: {error.strerror or error}"


def add_file(tar: tarfile.TarFile, path: str, data: bytes, is_executable: bool) -> None:
    add_member(tar, path, len(data), io.BytesIO(data), is_executable)


def add_member(
    tar: tarfile.TarFile, path: str, size: int, data: io.BufferedIOBase, is_executable: bool
) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = size
    entry.mode = 0o755 if is_executable else 0o644
    tar.addfile(entry, data)


class Pieces(io.RawIOBase):
    """Pieces of bytes as a file object."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def read_collected(archive: Path) -> Collected:
    """What was collected, from its archive. Raises OSError and tarfile.TarError."""
    # Not compressed: a damaged archive can look so, and what is damaged in it raises other errors.
    with open_regular(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
        files = {
            entry.name: FileDigest(
                name=entry.name,
                is_executable=entry.mode & 0o100 > 0,
                size=entry.size,
                sha256=digest(tar, entry),
            )
            for entry in tar
        }
    return Collected(archive=archive, files=files, others=None)


def contents(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    return b"" if file is None else file.read()


def digest(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    file: Any = tar.extractfile(entry) or io.BytesIO()
    return hashlib.file_digest(file, "sha256").hexdigest()


def changed_elsewhere(collected: Collected, before: Files | None) -> list[str] | None:
    """The paths of files that stay behind although the agent has made, changed or removed them.

    At most MOST_CHANGED. `before` contains the files of a working directory in which nobody has acted. None
    if not all files are known.
    """
    after = collected.others
    if after is None or before is None:
        return None
    names = sorted({*after, *before}.difference(collected.files))
    left = (name for name in names if IGNORED.isdisjoint(PurePosixPath(name).parts))
    changed = (name for name in left if content(after, name) != content(before, name))
    return list(islice(changed, MOST_CHANGED))


def content(files: Files, path: str) -> tuple[int, str] | None:
    return (files[path].size, files[path].sha256) if path in files else None
