"""Files on their way into a container: read, and as the tar archives that the engine takes."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from pytest_super.errors import InfrastructureError


def tar_of(files: dict[str, bytes]) -> bytes:
    """A tar archive of `files` (path: content), readable by everybody inside."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def read_file(path: Path) -> bytes:
    """Raises InfrastructureError for a file that cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot be read: {error.strerror}") from None
