"""Writes files so that readers never see a part of the content."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write text as UTF-8, or bytes. Raises OSError and then leaves the old file unchanged."""
    # In the same folder, because a rename is only atomic within a file system. The pid keeps several writers
    # apart. The name does not end in `.task.yaml`, so it is never collected.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
