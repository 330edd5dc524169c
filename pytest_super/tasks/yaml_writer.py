"""Writes JSON values as YAML that is readable and that `yaml_reader` reads back as the same values."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INDENT = 2
# Longer keys are written as `? key`: parsers search only 1,024 characters for the colon after a key.
LONGEST_KEY = 128

# Characters that need no escape: not the byte order mark, and not those that YAML 1.1 reads as line ends.
_VISIBLE = r" -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
_LINE = re.compile(f"[{_VISIBLE}]*")
_BLOCK = re.compile(rf"[{_VISIBLE}\t\n]*")
# A colon is plain only before a slash, as in a URL: before a blank it would end a key.
_PLAIN = re.compile(r"(?:[A-Za-z_]|/(?=\w))(?:[\w./+-]|:(?=/))*(?: (?:[\w./+-]|:(?=/))+)*", re.ASCII)
# Including words that only YAML 1.1 reads as booleans.
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_ESCAPED = re.compile(rf"[^{_VISIBLE}]")


def to_yaml(value: Mapping[str, Any]) -> str:
    """A non-empty mapping as a YAML document, with texts of several lines as literal blocks.

    Raises ValueError for a lone surrogate, which UTF-8 cannot encode, RecursionError for recursive values.
    """
    return _mapping(value, 0) + "\n"


def _mapping(value: Mapping[str, Any], column: int) -> str:
    return _lines((_entry(key, child, column) for key, child in value.items()), column)


def _sequence(value: Sequence[Any], column: int) -> str:
    return _lines((_item(child, column) for child in value), column)


def _lines(parts: Any, column: int) -> str:
    return "\n".join(" " * column + part for part in parts)


def _entry(key: str, value: Any, column: int) -> str:
    name = _line(key)
    start = f"? {name}\n{' ' * column}:" if len(name) > LONGEST_KEY else f"{name}:"
    if isinstance(value, dict) and value:
        return f"{start}\n{_mapping(value, column + INDENT)}"
    if isinstance(value, list) and value:
        return f"{start}\n{_sequence(value, column + INDENT)}"
    return f"{start} {_scalar(value, column)}"


def _item(value: Any, column: int) -> str:
    inner = column + INDENT
    if isinstance(value, dict) and value:
        return f"- {_mapping(value, inner)[inner:]}"
    if isinstance(value, list) and value:
        return f"- {_sequence(value, inner)[inner:]}"
    return f"- {_scalar(value, column)}"


def _scalar(value: Any, column: int) -> str:
    if isinstance(value, str):
        is_block = "\n" in value.rstrip("\n") and _BLOCK.fullmatch(value)
        return _block(value, column) if is_block else _line(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else f"{'-' * (value < 0)}.inf"
    # Numbers, booleans, null and empty collections are written as in JSON.
    return json.dumps(value)


def _block(text: str, column: int) -> str:
    """A literal block: the unchanged lines, indented."""
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    # Without an indentation indicator, YAML would infer it from the first line, which is itself indented.
    hint = str(INDENT) if body[0] in " \t\n" else ""
    chomp = "-" if not ends else "+" * (ends > 1)
    margin = " " * (column + INDENT)
    lines = "\n".join(margin + line if line else "" for line in body.split("\n"))
    return f"|{hint}{chomp}\n{lines}" + "\n" * (ends - 1)


def _line(text: str) -> str:
    """A text on one line, plain if every parser reads it as text, else quoted."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if ('"' in text or "\\" in text) and _LINE.fullmatch(text):
        # Single quotes need no escapes, which keeps regular expressions legible.
        return "'" + text.replace("'", "''") + "'"
    return _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError("half of a surrogate pair is not text")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
