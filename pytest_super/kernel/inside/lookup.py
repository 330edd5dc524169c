"""Finds files by name and by text, independent of the kernel. Delivered into the sandbox."""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

CHUNK = 2**20
# Of their folders only the names are of interest: what is in them is the packages' own.
PACKAGES = frozenset(("site-packages", "dist-packages"))
# Python looks for these packages when it starts.
STARTED = frozenset(("sitecustomize", "usercustomize"))
NOT_ENTERED = frozenset(("__pycache__", ".git", "node_modules"))
OF_THE_SYSTEM = frozenset(("/proc", "/sys", "/dev", "/usr/share", "/usr/include", "/var/lib"))
# A zero byte in this many first bytes makes a file binary, as in git.
TEXT_SAMPLE = 8192


def open_regular(path: str, flags: int = os.O_RDONLY) -> Any:
    """The file, opened with `flags`. Raises OSError for a device or a pipe, which can block for ever."""
    # O_NONBLOCK, because opening a pipe waits for its other end.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        # A folder can be opened for reading, but callers expect the error that `open` raises.
        if os.path.isdir(path):
            raise OSError(errno.EISDIR, "Is a directory")
        raise OSError(errno.EINVAL, "Not a regular file")
    return os.fdopen(descriptor, "wb" if flags & os.O_WRONLY else "rb")


class OutOfTime(Exception):
    """The search has taken its time."""


def search(folder: str, *, name: str, text: str, hidden: bool, most: int, seconds: float) -> dict[str, Any]:
    """The fields of a files.FileSearch. Files that cannot be opened are skipped."""
    folder = os.path.realpath(folder)
    deadline = time.monotonic() + seconds
    needle = text.encode("utf-8", "surrogateescape")
    result: dict[str, Any] = {"folder": folder, "found": [], "files": 0, "lines": 0, "is_complete": True}
    try:
        for path in files_below(folder, hidden):
            check_time(deadline)
            if not has_name(path, name):
                continue
            lines = count_in(os.path.join(folder, path), needle, deadline) if needle else 0
            if needle and not lines:
                continue
            result["files"] += 1
            result["lines"] += lines
            if len(result["found"]) < most:
                result["found"].append([path, lines])
    except OutOfTime:
        result["is_complete"] = False
    return result


def digests(path: str, *, most: int, largest: int, seconds: float) -> dict[str, Any]:
    """The fields of a files.Digests: the regular files at or below `path`, without following links.

    Of files of more than `largest` bytes the content is not read. Raises OSError if there is nothing at
    `path`, or only a link.
    """
    deadline = time.monotonic() + seconds
    found: list[dict[str, Any]] = []
    result = {"files": found, "is_complete": True}
    try:
        for name in [""] if is_file(path) else files_below(path, hidden=True):
            if len(found) == most:
                raise OutOfTime
            file = os.path.join(path, name) if name else path
            with suppress(OSError), open_regular(file) as opened:
                status = os.fstat(opened.fileno())
                is_executable = status.st_mode & stat.S_IXUSR > 0
                sha256 = digest(opened, deadline) if status.st_size <= largest else ""
                found.append(
                    {"name": name, "is_executable": is_executable, "size": status.st_size, "sha256": sha256}
                )
    except OutOfTime:
        result["is_complete"] = False
    return result


def changed(folder: str, *, pattern: str, since: float, most: int, seconds: float) -> dict[str, Any]:
    """The files and links below a folder whose paths match, and that have changed at `since` or later.

    Each with its real path. A folder of packages is looked at without those in it, but with their lists of
    files.
    """
    deadline, matches = time.monotonic() + seconds, re.compile(pattern).search
    found: list[list[str]] = []
    result = {"found": found, "is_complete": True}
    try:
        for path in paths_below(folder):
            check_time(deadline)
            if matches(path) and changed_at(path) >= since:
                if len(found) == most:
                    raise OutOfTime
                found.append([path, os.path.realpath(path)])
    except OutOfTime:
        result["is_complete"] = False
    return result


class Watch:
    """What has changed below a folder each time that somebody asks."""

    def __init__(self) -> None:
        self._before: dict[str, dict[str, tuple[int, ...]]] = {}

    def changes(self, folder: str, *, most: int, largest: int, seconds: float) -> dict[str, str] | None:
        """The files that were made, changed or removed since the last time, with what tells their content.

        That is a digest, the size of a file of more than `largest` bytes, "" for one that is gone. At most
        `most` files, the first by their names; none the first time. None if looking took too long.
        """
        deadline = time.monotonic() + seconds
        try:
            now = states_below(folder, deadline)
            before = self._before.setdefault(folder, now)
            self._before[folder] = now
            changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))[:most]
            return {
                path: told_content(os.path.join(folder, path), largest, deadline) if path in now else ""
                for path in changed
            }
        except OutOfTime:
            return None


def states_below(folder: str, deadline: float) -> dict[str, tuple[int, ...]]:
    """What changes with each file, by relative paths, without hidden files."""
    found: dict[str, tuple[int, ...]] = {}
    for path in paths_below(folder):
        check_time(deadline)
        name = os.path.relpath(path, folder)
        if not name.startswith(".") and f"{os.sep}." not in name:
            with suppress(OSError):
                status = os.lstat(path)
                found[name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def told_content(path: str, largest: int, deadline: float) -> str:
    try:
        if os.path.islink(path):
            return "-> " + os.readlink(path)
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            return digest(file, deadline) if size <= largest else f"{size} bytes"
    except OSError:
        return ""


def paths_below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        is_of_packages = os.path.basename(place) in PACKAGES
        folders[:] = [name for name in folders if is_entered(place, name, is_of_packages)]
        yield from (os.path.join(place, name) for name in names)


def is_entered(place: str, name: str, is_of_packages: bool) -> bool:
    if is_of_packages:
        return name.endswith(".dist-info") or name in STARTED
    return name not in NOT_ENTERED and os.path.join(place, name) not in OF_THE_SYSTEM


def is_file(path: str) -> bool:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "Is a link")
    return stat.S_ISREG(mode)


def digest(file: Any, deadline: float) -> str:
    """Its SHA-256. Raises OutOfTime."""
    sha256 = hashlib.sha256()
    while chunk := file.read(CHUNK):
        sha256.update(chunk)
        check_time(deadline)
    return sha256.hexdigest()


def files_below(folder: str, hidden: bool) -> Iterator[str]:
    """Relative paths of the regular files, in a fixed order. Raises OSError if `folder` cannot be read."""
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


def changed_at(path: str) -> float:
    try:
        status = os.lstat(path)
    except OSError:
        return 0.0
    return max(status.st_mtime, status.st_ctime)


def sorted_entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return iter(sorted(entries, key=lambda entry: entry.name))


def has_name(path: str, name: str) -> bool:
    """Whether `name` matches the end of `path`. `name` can be a pattern and can contain folders."""
    own = "/".join(path.split("/")[-1 - name.count("/") :])
    # The name `a[1].txt` is also a pattern, which does not match the file of that name.
    return own == name or fnmatch.fnmatchcase(own, name)


def count_in(path: str, needle: bytes, deadline: float) -> int:
    """The number of lines of a text file that contain `needle`. Raises OutOfTime."""
    lines = 0
    with suppress(OSError), open_regular(path) as file:
        if b"\0" in file.peek(TEXT_SAMPLE)[:TEXT_SAMPLE]:
            return 0
        # Of a longer line, pieces count: it can be larger than the memory.
        while line := file.readline(CHUNK):
            lines += needle in line
            check_time(deadline)
    return lines


def check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise OutOfTime
