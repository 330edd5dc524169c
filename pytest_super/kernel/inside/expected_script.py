"""The script that the agent is to run, as the host told it: is a file that a process names that script?

Delivered into the sandbox.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_super.kernel.inside.lookup import open_regular
from pytest_super.kernel.inside.process_image import kept_lines, repositories_of

LONGEST_SCRIPT = 2**20
LONGEST_INDEX = 2**26
# Where an entry of a git index has its flags and, without further flags, its path; the bit of further flags.
FLAGS, PATH, HAS_MORE = 60, 62, 0x4000


class ExpectedScript:
    """The end of the script's path, and the content that it should have; b"" if that is not known."""

    def __init__(self, name: str = "", content: bytes = b"") -> None:
        self._name = name
        self._content = content

    def compare(self, files: Iterable[str]) -> dict[str, Any]:
        """Whether the script was changed, and the portion of its lines that is left.

        Of several files that can be it the worst counts: the host decides which one the process runs.
        """
        paths = self._named(files) if self._content else []
        found = [content for path in paths if (content := content_of(path, LONGEST_SCRIPT)) is not None]
        if not found:
            return {}
        kept = min(kept_lines(self._content, content) for content in found)
        return {"changed": any(content != self._content for content in found), "kept_lines": kept}

    def only(self, files: Iterable[str]) -> list[str]:
        """Keep files that are the only one of their name in their repository.

        A name with a folder was found by the host, which knows the repository that it has provided.
        """
        return [path for path in self._named(files) if "/" in self._name or is_only(path)]

    def _named(self, files: Iterable[str]) -> list[str]:
        return list(filter(self.is_named, files))

    def is_named(self, path: str) -> bool:
        return bool(self._name) and path.endswith("/" + self._name)


def is_only(path: str) -> bool:
    """Whether the git repository around the file tracks it, and no other file of its name.

    By the index and not by the folder, in which the agent installs and builds.
    """
    for repository in repositories_of([path]):
        index = content_of(repository + "/.git/index", LONGEST_INDEX)
        own, name = os.fsencode(os.path.relpath(path, repository)), os.fsencode(os.path.basename(path))
        try:
            return {one for one in tracked(index or b"") if one.rpartition(b"/")[2] == name} == {own}
        # Code inside can have written it.
        except (struct.error, ValueError):
            return False
    return False


def tracked(index: bytes) -> Iterator[bytes]:
    """The paths in a git index of version 2 or 3. Raises struct.error or ValueError for any other content."""
    signature, version, count = struct.unpack_from(">4sII", index)
    if signature != b"DIRC" or version not in (2, 3):
        raise ValueError("not an index that we read")
    at = 12
    for _ in range(count):
        (flags,) = struct.unpack_from(">H", index, at + FLAGS)
        start = at + PATH + (2 if flags & HAS_MORE else 0)
        end = index.index(b"\0", start)
        yield index[start:end]
        # Entries are filled with zeros to a multiple of 8 bytes.
        at += (end - at) // 8 * 8 + 8


def content_of(path: str, limit: int) -> bytes | None:
    """Read at most the first `limit` bytes of a file; None if it cannot be read."""
    try:
        with open_regular(path) as file:
            content: bytes = file.read(limit)
            return content
    except OSError:
        return None
