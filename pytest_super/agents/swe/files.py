"""File access of SWE-agent's tools: text files of limited size."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.kernel.files import SandboxFiles

LARGEST = 32 * 2**20
# A zero byte in this many first bytes makes a file binary, as in git.
TEXT_SAMPLE = 8192


class ToolRefused(Exception):
    """The command was not carried out. The text tells the agent why."""


class MissingFile(ToolRefused):
    """The file does not exist."""


def read(files: SandboxFiles, name: str) -> bytes:
    """The bytes of a text file of at most LARGEST bytes. Raises ToolRefused."""
    try:
        data = files.read(name, LARGEST)
    except OSError as error:
        raise refused(error, name) from None
    if b"\0" in data[:TEXT_SAMPLE]:
        raise ToolRefused(f"Error: {printable(name)} is a binary file, which the editor cannot show")
    return data


def write(files: SandboxFiles, name: str, data: bytes) -> None:
    """Raises ToolRefused."""
    try:
        files.write(name, data)
    except OSError as error:
        raise refused(error, name) from None


def exists(files: SandboxFiles, name: str) -> bool:
    """Whether anything has this name."""
    try:
        # Reads nothing: with the limit 0, a file that has content raises OSError.
        files.read(name, 0)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def refused(error: OSError, name: str) -> ToolRefused:
    name = printable(name)
    if isinstance(error, FileNotFoundError):
        return MissingFile(f"File {name} not found")
    if error.errno == errno.EFBIG:
        return ToolRefused(
            f"Error: {name} is larger than {LARGEST // 2**20} MiB: use a cell to look at parts of it"
        )
    return ToolRefused(f"Error: {name}: {error.strerror or error}")


def printable(name: str) -> str:
    """A name as text that can be encoded; bytes that are not UTF-8 are replaced."""
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        # A model can write a surrogate that does not stand for a byte.
        return name.encode("utf-8", "replace").decode("utf-8")
