"""What code inside has written to folders on this machine, read from outside of the sandbox."""

from __future__ import annotations

import os
import posixpath
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Of links that lead to each other.
MOST_LINKS = 8


@dataclass(frozen=True, kw_only=True)
class WrittenFolders:
    """A `WrittenFiles` of a sandbox whose files are on this machine."""

    folders: Mapping[str, Path]
    """The folders that are looked at: the path inside, and where it is on this machine."""
    is_whole: bool
    begins_empty: bool = False

    def paths(self) -> Iterator[str]:
        for inside, folder in self.folders.items():
            # It does not follow links, which code inside can let lead anywhere.
            for place, _, names in os.walk(folder):
                below = inside + place.removeprefix(str(folder))
                yield from (f"{below}/{name}" for name in names)

    def read(self, path: str, most: int) -> bytes:
        for _ in range(MOST_LINKS):
            place = self._on_host(path)
            if not place.is_symlink():
                return beginning(place, most)
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), os.readlink(place)))
        return b""

    def _on_host(self, path: str) -> Path:
        for inside, folder in self.folders.items():
            if path == inside or path.startswith(f"{inside}/"):
                return folder / path[len(inside) :].lstrip("/")
        return Path(path)


def beginning(file: Path, most: int) -> bytes:
    """The first bytes of a regular file; none of another one, as reading from a device can do something."""
    with suppress(OSError, ValueError):
        if stat.S_ISREG(file.lstat().st_mode):
            with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
                return stream.read(most)
    return b""
