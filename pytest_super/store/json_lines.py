"""Files of JSON lines, written by processes that can die: reading, writing, and errors of the disk."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.reading import read_text
from pytest_super.words import LINE_LIMIT, shortened

# What reading a file of any content can raise.
UNREADABLE = (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def damage(error: BaseException) -> str:
    """Why a file cannot be read. What Python says of a value of another kind is about our code."""
    if isinstance(error, KeyError):
        return f"it has no `{error.args[0]}`"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, TypeError | AttributeError | LookupError | ArithmeticError):
        return "it has a value of another kind than expected"
    return shortened(getattr(error, "strerror", None) or str(error), LINE_LIMIT)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The complete JSON lines of a file; none if it does not exist. A dying process can cut the last line."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        return
    for line in text.split("\n"):
        try:
            yield json.loads(line)
        except ValueError:
            # Not only at the end: a gateway that was restarted appends after the cut line.
            continue


def read_json(path: Path) -> Any:
    """The value in a file. Raises one of UNREADABLE."""
    return json.loads(read_text(path))


def read_object(path: Path) -> dict[str, Any]:
    """The object in a file; empty if it cannot be read."""
    try:
        return dict(read_json(path))
    except UNREADABLE:
        return {}


def to_line(data: dict[str, Any]) -> str:
    # Outputs of a sandbox can contain lone surrogates, which UTF-8 cannot encode, so non-ASCII is escaped.
    return json.dumps(data) + "\n"


def append(path: Path, text: str, *, is_synced: bool = True) -> None:
    """Append lines that survive this process, and a crash of the machine if `is_synced`. Raises OSError."""
    with path.open("a+b") as file:
        # A dying process or a full disk can have cut the last line. Both would be lost.
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(text.encode())
        file.flush()
        if is_synced:
            os.fsync(file.fileno())


def sync(*paths: Path) -> None:
    """Make the content of files survive a crash of the machine. Raises OSError.

    Each takes milliseconds. So a trial's steps are synced at its end, not one by one: without a result, the
    trial has to be run again anyway.
    """
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def escape_surrogates(value: Any) -> Any:
    """The JSON value with lone surrogates escaped: xdist cannot send them, and its worker would end."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {escape_surrogates(key): escape_surrogates(child) for key, child in value.items()}
    if isinstance(value, list):
        return [escape_surrogates(child) for child in value]
    return value


# After these errors no other trial can be stored either.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@contextmanager
def disk_errors(path: Path, option: str = "--super-dir") -> Iterator[None]:
    """Turns an OSError of writing results into an InfrastructureError with `path`, which `option` chooses."""
    try:
        yield
    except OSError as error:
        is_final = error.errno in FULL
        what_to_do = f": make room, or name another folder by {option}" if is_final else ""
        message = f"results cannot be written under {path}: {error.strerror or error}{what_to_do}"
        raise InfrastructureError(message, is_final=is_final) from error
