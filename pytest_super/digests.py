"""Digests of JSON values and of folders: equal for equal content, wherever it lies."""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LENGTH = 32
# Where Python keeps what it compiles, which says nothing of the code.
PYCACHE = "__pycache__"


def digest(data: Any) -> str:
    """Digest plain JSON values; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:LENGTH]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_of(root: Path) -> list[list[Any]]:
    """The relative path, the kind and the content of everything below a folder, without PYCACHE."""
    found = sorted(root.rglob("*"))
    return [entry_of(root, path) for path in found if PYCACHE not in path.relative_to(root).parts]


def entry_of(root: Path, path: Path) -> list[Any]:
    content = ""
    if path.is_symlink():
        content = os.readlink(path)
    elif path.is_file():
        content = file_digest(path)
    mode = path.lstat().st_mode
    # Other permissions depend on the machine, by its umask.
    return [str(path.relative_to(root)), stat.S_IFMT(mode), bool(mode & stat.S_IXUSR), content]


def source_of(root: Path) -> list[list[Any]]:
    """The relative path and the content of the files of a package, code and data."""
    return [[str(path.relative_to(root)), file_digest(path)] for path in files_of(root)]


def files_of(root: Path) -> Iterator[Path]:
    """Yield the files but what running makes, and hidden ones, such as those of git."""
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and not any(part.startswith(".") or part == PYCACHE for part in parts):
            yield path
