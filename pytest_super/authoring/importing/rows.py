"""The rows of a JSON Lines file, each with its line number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError

if TYPE_CHECKING:
    from pathlib import Path

Warn = Callable[[str], None]

_SURROGATE = re.compile("[\\ud800-\\udfff]")


class NoTaskError(Exception):
    """The row yields no task; the text says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One object of a JSON Lines file; `number` is its line, from 1."""

    number: int
    fields: dict[str, Any]


def read_rows(path: Path, shown: str) -> list[Row]:
    """The rows of a file that messages call `shown`. Raises SuperError with every line that is not a row."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SuperError(f"{shown}: cannot be read: {error.strerror}") from None
    rows: list[Row] = []
    errors: list[str] = []
    # Not by splitlines, which also splits at characters such as U+2028, which JSON allows in texts.
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            try:
                rows.append(Row(number, read_object(line)))
            except ValueError as error:
                errors.append(f"{shown}:{number}: {error}")
    if errors:
        raise SuperError("\n".join(errors))
    if not rows:
        raise SuperError(f"{shown}: the file has no row")
    return rows


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


def without_surrogates(value: Any) -> Any:
    """The value with U+FFFD for each lone surrogate, which UTF-8 cannot encode."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_surrogates(child) for child in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(child) for key, child in value.items()}
    return value
