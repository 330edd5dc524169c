"""The host's side of file operations in a sandbox: bytes of any name and size, independent of the kernel."""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from pytest_super.kernel.schema import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Default limit of a read: a file in the sandbox can be larger than the host's memory.
READ_LIMIT = 2**28
# Bytes of a large file that are in the host's memory at a time.
PIECE = 4 * CHUNK
# Most files that a search lists.
NAMED = 1000
# The changes of files that are told, the bytes that are read of each, and how long looking for them can take.
# Nobody is charged for it.
MOST_CHANGES = 200
LARGEST_CHANGE = 2**20
CHANGES_SECONDS = 0.5
# Most files whose digests are listed.
DIGESTED = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEntry:
    """An entry of a folder in the sandbox. `size` in bytes, `modified` in seconds since 1970."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified: float


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSearch:
    """The result of a search below a folder."""

    folder: str
    """Its real absolute path."""
    found: list[tuple[str, int]]
    """Relative path and number of matching lines of each file, for at most NAMED files."""
    files: int
    """Number of matching files, including those not listed in `found`."""
    lines: int
    """Number of matching lines in all these files."""
    is_complete: bool
    """False when the search ran out of time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFiles:
    """Files that have changed since a time."""

    paths: dict[str, str]
    """Their paths and the real ones, which are others for links."""
    is_complete: bool
    """False when there were more, or looking took too long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDigest:
    """A regular file in the sandbox, found below a folder. `size` in bytes."""

    name: str
    """Its path relative to the folder; "" if it was asked for itself."""
    is_executable: bool
    size: int
    sha256: str
    """ "" for a file of more than READ_LIMIT bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Digests:
    """The regular files at or below a path, without those that cannot be read."""

    files: list[FileDigest]
    is_complete: bool
    """False when there were more than DIGESTED files, or reading them took too long."""


def write_archive(tree: Path, send: Callable[[bytes], int]) -> None:
    file: Any = SimpleNamespace(write=send)
    with tarfile.open(fileobj=file, mode="w|", bufsize=CHUNK) as archive:
        for name in sorted(os.listdir(tree)):
            archive.add(tree / name, arcname=name, filter=anonymous)


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The entry without its owner, so that the sandbox's user owns it. None for devices and pipes."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry if entry.isreg() or entry.isdir() or entry.issym() or entry.islnk() else None
