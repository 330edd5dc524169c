"""Finds files by name and by text, independent of the kernel. Delivered into the sandbox."""

from __future__ import annotations

import fnmatch
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CHUNK = 2**20
# A zero byte in this many first bytes makes a file binary, as in git.
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
    """The fields of a files.FileSearch. `read` opens a file; files that it cannot open are skipped."""
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
    """Relative paths of the regular files in a fixed order, without following links.

    Raises OSError if `folder` cannot be read; unreadable folders below it are skipped.
    """
    stack = [("", sorted_entries(folder))]
    while stack:
        prefix, entries = stack[-1]
        entry = next(entries, None)
        if entry is None:
            stack.pop()
        elif entry.name.startswith(".") and not hidden:
            continue
        elif entry.is_dir(follow_symlinks=False):
            try:
                stack.append((prefix + entry.name + "/", sorted_entries(entry.path)))
            except OSError:
                continue
        elif entry.is_file(follow_symlinks=False):
            yield prefix + entry.name


def sorted_entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return iter(sorted(entries, key=lambda entry: entry.name))


def has_name(path: str, name: str) -> bool:
    """Whether `name` matches the end of `path`. `name` can be a pattern and can contain folders."""
    own = "/".join(path.split("/")[-1 - name.count("/") :])
    # The name `a[1].txt` is also a pattern, which does not match the file of that name.
    return own == name or fnmatch.fnmatchcase(own, name)


def count_in(path: str, needle: bytes, read: Callable[[str], Any], deadline: float) -> tuple[int, bool]:
    """The number of lines of a text file that contain `needle`, and whether the file was read to its end."""
    try:
        with read(path) as file:
            chunks = Chunks(file, deadline)
            return count_lines(chunks, needle), not chunks.is_late
    except OSError:
        return 0, True


class Chunks:
    """The pieces of a text file; empty for a binary one. `is_late` if the deadline passed before its end."""

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
        # A read returns None when there is no data now, as for some files in /proc.
        data: bytes = self._file.read(CHUNK) or b""
        return data


def count_lines(chunks: Iterable[bytes], needle: bytes) -> int:
    """The number of lines that contain `needle`, which has no newline. Needs little memory for long lines."""
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
        # The end of the data that can be the beginning of a needle, but is too short to contain one.
        rest = data[max(position, len(data) - len(needle) + 1) :]
    return lines
