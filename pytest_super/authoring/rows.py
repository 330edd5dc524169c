"""The rows of a JSON Lines file, each with its line number."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from pytest_super.errors import SuperError
from pytest_super.reading import read_bytes


class Row(NamedTuple):
    number: int
    """Its line, from 1."""
    fields: dict[str, Any]


def read_rows(path: Path, shown: str) -> list[Row]:
    """The rows of a file that messages call `shown`. Raises SuperError with every line that is not a row."""
    rows: list[Row] = []
    errors: list[str] = []
    # Not by splitlines, which also splits at characters such as U+2028, which JSON allows in texts.
    for number, line in enumerate(content_of(path, shown).split(b"\n"), 1):
        if line.strip():
            try:
                rows.append(Row(number, read_object(line)))
            except ValueError as error:
                errors.append(f"{shown}:{number}: {error}")
    if errors:
        raise SuperError("\n".join(errors))
    return rows


def content_of(path: Path, shown: str) -> bytes:
    try:
        return read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise SuperError(f"{shown}: cannot be read: {error.strerror}") from None


def read_object(line: bytes) -> dict[str, Any]:
    """Raises ValueError, which says what is wrong with the line."""
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 (byte 0x{line[error.start]:02x} at column {error.start + 1})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not a row: it should be a JSON object")
    return value
