"""The read action: the text of a file."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.kernel.files import SandboxFiles

# As much as the host keeps of the beginning of a cell's output.
LARGEST = 100_000
# Characters of a file name or an OS error in a message; real ones are shorter.
LONGEST = 4096


def read_text(files: SandboxFiles, path: str) -> tuple[str, str]:
    """The observation and the outcome, `ok` or `error`. What is not UTF-8 is replaced by U+FFFD."""
    try:
        return files.read(path, LARGEST).decode("utf-8", "replace"), "ok"
    except OSError as error:
        reason = " ".join((error.strerror or str(error))[:LONGEST].split())
        if error.errno == errno.EFBIG:
            reason = f"it has more than {LARGEST:,} bytes; print parts of it in a cell"
        return f"ERROR: File {path[:LONGEST]} cannot be read: {reason}.", "error"
