"""The files of a sandbox, as the host uses them: of any name and size, independent of the kernel."""

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, Literal

from pytest_super.digests import PYCACHE
from pytest_super.kernel.file_requests import FileChannel
from pytest_super.kernel.schema import CHUNK

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


class SandboxFiles:
    """The files of one sandbox. They need no kernel, and can still be read after `Kernel.kill`.

    When the sandbox is gone, all methods raise SandboxLostError, or EngineError if its engine failed.
    """

    def __init__(self, channel: FileChannel) -> None:
        self.writes = 0
        """Number of calls of `write`, `remove`, `upload` and `unpack`."""
        self._channel = channel

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """The file's bytes. A relative path is resolved as in a cell.

        Raises OSError with the path, as `open` does, and with EFBIG for more than `limit` bytes.
        """
        return self._channel.data("read", path, limit)

    def read_pieces(self, path: str, size: int) -> Iterator[bytes]:
        """The file's first `size` bytes, in pieces that take little memory. Raises OSError as `open` does."""
        for start in range(0, size, PIECE):
            yield self._channel.data("piece", path, min(PIECE, size - start), start=start)

    def write(self, path: str, data: bytes) -> None:
        """Make or overwrite the file, in place; its folder must exist. Raises OSError as `open` does."""
        self.writes += 1
        with self._channel.sending("write", path, size=len(data)) as send:
            for start in range(0, len(data), CHUNK):
                send(data[start : start + CHUNK])

    def entries(self, path: str = ".") -> list[FileEntry]:
        """The entries of the folder, sorted by name. Raises OSError as `os.scandir` does."""
        return [FileEntry(**entry) for entry in self._channel.value("list", path)]

    def resolve(self, path: str = ".") -> str:
        """The real absolute path of `path`, which need not exist. By default the folder that cells run in."""
        return str(self._channel.value("resolve", path))

    def search(
        self, path: str = ".", *, name: str = "*", text: str = "", hidden: bool = True, seconds: float = 10.0
    ) -> FileSearch:
        """The regular files below the folder with this name and this text.

        Raises OSError as `os.scandir` does. `name` can be an fnmatch pattern and can begin with folders.
        `text` is one line, not a pattern; binary files are not searched. Unless `hidden`, names that begin
        with a dot are left out.
        """
        asked = {"name": name, "text": text, "hidden": hidden, "seconds": seconds}
        return FileSearch(**self._channel.value("search", path, most=NAMED, **asked))

    def now(self) -> float:
        """The sandbox's time, in seconds since 1970."""
        return float(self._channel.value("clock", ""))

    def memory_kills(self) -> int:
        """How many processes the system has killed inside for lack of memory; 0 where it does not count."""
        return int(self._channel.value("memory_kills", ""))

    def changed(
        self, folder: str, pattern: str, *, since: float, most: int, seconds: float = 10.0
    ) -> ChangedFiles:
        """The files and links below whose absolute paths match, and that have changed since.

        `since` is by the sandbox's clock. Folders of packages are looked at without those in them.
        """
        asked = {"pattern": pattern, "since": since, "most": most, "seconds": seconds}
        found = self._channel.value("changed", folder, **asked)
        return ChangedFiles(paths=dict(found["found"]), is_complete=found["is_complete"])

    def changes(self, folder: str) -> dict[str, str] | None:
        """The files below that were made, changed or removed since the last call; none at the first one.

        By their relative paths, hidden ones left out, and at most MOST_CHANGES: the SHA-256 of each, the size
        of one of more than LARGEST_CHANGE bytes, "" if it is gone. None if looking took too long.
        """
        asked = {"most": MOST_CHANGES, "largest": LARGEST_CHANGE, "seconds": CHANGES_SECONDS}
        found: dict[str, str] | None = self._channel.value("changes", folder, **asked)
        return found

    def digests(self, path: str = ".", *, seconds: float = 60.0) -> Digests:
        """The regular files at or below `path`, with the digests of their content. Links are not followed.

        Raises OSError if there is no file or folder at `path`, or if it is a link.
        """
        asked = {"most": DIGESTED, "largest": READ_LIMIT, "seconds": seconds}
        found = self._channel.value("digests", path, **asked)
        files = [FileDigest(**file) for file in found["files"]]
        return Digests(files=files, is_complete=found["is_complete"])

    def remove(self, path: str) -> None:
        """Remove the file, link or folder, if it is there. Raises OSError as `os.unlink` does."""
        self.writes += 1
        self._channel.data("remove", path)

    def upload(self, tree: Path, path: str) -> None:
        """Copy the content of the folder `tree` into the folder `path`, which is made if it is missing.

        Folders named `__pycache__` are left out: they have what Python compiled on the host.
        """
        self.writes += 1
        with self._channel.sending("upload", path) as send:
            file: Any = SimpleNamespace(write=send)
            with tarfile.open(fileobj=file, mode="w|", bufsize=CHUNK) as archive:
                for name in sorted(os.listdir(tree)):
                    archive.add(tree / name, arcname=name, filter=anonymous)

    def unpack(self, archive: Path, path: str) -> None:
        """Unpack a tar archive of the host's own making in the folder `path`, which is made if it is missing.

        Folders that its files need are made too. Absolute names leave the folder.
        """
        self.writes += 1
        with archive.open("rb") as file, self._channel.sending("upload", path) as send:
            while chunk := file.read(CHUNK):
                send(chunk)


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The entry without its owner, so that the sandbox's user owns it. None for what is not copied."""
    if entry.isdir() and PurePosixPath(entry.name).name == PYCACHE:
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry if entry.isreg() or entry.isdir() or entry.issym() or entry.islnk() else None
