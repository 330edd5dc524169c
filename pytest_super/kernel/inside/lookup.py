"""Finding files by name and by text, in the sandbox and beside the kernel. Delivered into the sandbox."""

from __future__ import annotations

import fnmatch
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CHUNK = 2**20
# A zero byte this early makes a file binary, as for git.
TEXT_SAMPLE = 8192


def search(
    folder: str,
    read: Callable[[str], Any],
    *,
    name: str,
    text: str,
    hidden: bool,
    most: int,
    seconds: float,
) -> dict[str, Any]:
    """The fields of a files.FileSearch. `read` opens a file; what it cannot open is left out."""
    deadline = time.monotonic() + seconds
    needle = text.encode("utf-8", "surrogateescape")
    result: dict[str, Any] = {"folder": folder, "found": [], "files": 0, "lines": 0, "is_complete": True}
    for path in files_below(folder, hidden):
        if time.monotonic() > deadline:
            result["is_complete"] = False
            return result
        if not has_name(path, name):
            continue
        lines, is_read = count_in(os.path.join(folder, path), needle, read, deadline) if needle else (0, True)
        result["is_complete"] = result["is_complete"] and is_read
        if needle and not lines:
            continue
        result["files"] += 1
        result["lines"] += lines
        if len(result["found"]) < most:
            result["found"].append([path, lines])
    return result


def files_below(folder: str, hidden: bool) -> Iterator[str]:
    """Relative paths of the regular files, links not followed, in a fixed order. OSError for the folder."""
    open_ends = [("", sorted_entries(folder))]
    while open_ends:
        prefix, entries = open_ends[-1]
        entry = next(entries, None)
        if entry is None:
            open_ends.pop()
        elif entry.name.startswith(".") and not hidden:
            continue
        elif entry.is_dir(follow_symlinks=False):
            try:
                open_ends.append((prefix + entry.name + "/", sorted_entries(entry.path)))
            except OSError:
                continue
        elif entry.is_file(follow_symlinks=False):
            yield prefix + entry.name


def sorted_entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return iter(sorted(entries, key=lambda entry: entry.name))


def has_name(path: str, name: str) -> bool:
    """Whether `name`, which may be a pattern and may hold folders, is that of the file at `path`."""
    own = "/".join(path.split("/")[-1 - name.count("/") :])
    return own == name or fnmatch.fnmatchcase(own, name)


def count_in(path: str, needle: bytes, read: Callable[[str], Any], deadline: float) -> tuple[int, bool]:
    """How many lines of a text file hold the needle, and whether it was read to its end."""
    try:
        with read(path) as file:
            chunks = Chunks(file, deadline)
            return count_lines(chunks, needle), not chunks.is_late
    except OSError:
        return 0, True


class Chunks:
    """The pieces of a file, none of a binary one; `is_late` when the deadline came first."""

    def __init__(self, file: Any, deadline: float) -> None:
        self._file = file
        self._deadline = deadline
        self.is_late = False

    def __iter__(self) -> Iterator[bytes]:
        chunk = self._read()
        if b"\0" in chunk[:TEXT_SAMPLE]:
            return
        while chunk:
            yield chunk
            if time.monotonic() > self._deadline:
                self.is_late = True
                return
            chunk = self._read()

    def _read(self) -> bytes:
        # None from what has nothing to give now, as some files of the kernel's do.
        data: bytes = self._file.read(CHUNK) or b""
        return data


def count_lines(chunks: Iterable[bytes], needle: bytes) -> int:
    """How many lines hold the needle, which holds no newline; in little memory, however long a line is."""
    lines, rest, is_counted = 0, b"", False
    for chunk in chunks:
        data, position = rest + chunk, 0
        while True:
            at = data.find(b"\n" if is_counted else needle, position)
            if at < 0:
                break
            position = at + (1 if is_counted else len(needle))
            lines += not is_counted
            is_counted = not is_counted
        # What may be the beginning of the needle; a whole one cannot hide in it.
        rest = data[max(position, len(data) - len(needle) + 1) :]
    return lines
