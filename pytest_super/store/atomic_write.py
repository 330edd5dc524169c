"""Writes files so that readers never see a part of the content."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write text as UTF-8, or bytes. Raises OSError and then leaves the old file unchanged."""
    with replacing(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def copy_atomically(source: Path, path: Path) -> None:
    """Copy a file of any size with its permissions. Raises OSError and then leaves the old file unchanged."""
    with replacing(path) as draft:
        shutil.copy(source, draft)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write, which then takes the place of `path`."""
    # In the same folder, because a rename is only atomic within a file system. The pid keeps several writers
    # apart. The name does not end in `.task.yaml`, so it is never collected.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
