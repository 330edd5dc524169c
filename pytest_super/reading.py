"""Reads files of users and of runs: regular ones alone, because a pipe waits and a device has no end."""

import errno
import os
import stat
from typing import BinaryIO

# Of a file that is read into memory.
MOST_BYTES = 2**30


def open_regular(path: os.PathLike[str]) -> BinaryIO:
    """Raises OSError, for what is not a regular file, too."""
    # Opening a pipe would wait for its other end.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    return file


def read_bytes(path: os.PathLike[str]) -> bytes:
    """Raises OSError."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES:,} bytes", os.fspath(path))
        return file.read()


def read_text(path: os.PathLike[str]) -> str:
    """Raises OSError and UnicodeDecodeError."""
    return read_bytes(path).decode("utf-8")
