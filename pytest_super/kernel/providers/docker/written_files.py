"""What a container has written since it was made of its image, asked of its engine."""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.kernel.providers.docker.engine import connect, engine_errors
from pytest_super.kernel.providers.docker.saved_files import DELETED

if TYPE_CHECKING:
    from collections.abc import Iterator

# Room for the headers before a file's content in an archive.
HEADERS = 8192
# Bits of a mode as the engine tells it.
FOLDER, LINK, DEVICE_OR_PIPE = 1 << 31, 1 << 27, 1 << 26 | 1 << 25 | 1 << 24


@dataclass(frozen=True, kw_only=True)
class WrittenInContainer:
    """A `WrittenFiles`."""

    container: str
    is_whole: bool = True
    begins_empty: bool = True

    def paths(self) -> Iterator[str]:
        with engine_errors("list what a container has written"):
            changes = connect().diff(self.container) or []
        return (change["Path"] for change in changes if change["Kind"] != DELETED)

    def read(self, path: str, most: int) -> bytes:
        # Not at the top, because most sessions have no engine.
        from docker.errors import NotFound

        with engine_errors("read a file of a container"), suppress(NotFound):
            pieces, found = connect().get_archive(self.container, path)
            if found["mode"] & LINK and found["linkTarget"]:
                pieces, found = connect().get_archive(self.container, found["linkTarget"])
            if not found["mode"] & (FOLDER | LINK | DEVICE_OR_PIPE):
                return content_of(pieces, most)
        return b""


def content_of(pieces: Any, most: int) -> bytes:
    """The first bytes of the only file in an archive that arrives in pieces."""
    data = b""
    for piece in pieces:
        data += piece
        if len(data) > most + HEADERS:
            break
    pieces.close()
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|") as archive:
        entry = archive.next()
    return data[entry.offset_data :][: min(entry.size, most)] if entry else b""
