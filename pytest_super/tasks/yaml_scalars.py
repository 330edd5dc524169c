"""The plain scalars of YAML 1.2 in task files: which type a text has, and its value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TAG = "tag:yaml.org,2002:"
STR, SEQ, MAP = TAG + "str", TAG + "seq", TAG + "map"
PLAIN = {
    TAG + name: re.compile(pattern)
    for name, pattern in (
        # The last alternative is empty: a key without a value is null.
        ("null", r"~|null|Null|NULL|"),
        ("bool", r"true|True|TRUE|false|False|FALSE"),
        ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
        (
            "float",
            r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        ),
    )
}
# The first characters of plain scalars that are not strings.
SPECIAL = frozenset("~nNtTfF-+.0123456789")


def unknown_tag(tag: str) -> str:
    return f"the tag {tag.replace(TAG, '!!')} is not supported here"


def construct(tag: str, text: str) -> Any:
    """The value of a scalar. Raises ValueError, also for an explicit tag that does not fit the text."""
    if tag == STR:
        return text
    if tag not in CONSTRUCT:
        raise ValueError(unknown_tag(tag))
    if not PLAIN[tag].fullmatch(text):
        raise ValueError(f"`{text[:40]}` is not a {tag.replace(TAG, '!!')}")
    return CONSTRUCT[tag](text)


def parse_int(text: str) -> int:
    if text[:2] in ("0x", "0o"):
        return int(text, 0)
    try:
        # Not with base 0, which refuses leading zeros. Python refuses more than 4,300 digits.
        return int(text)
    except ValueError:
        raise ValueError(f"a number with {len(text):,} digits is too long: quote it as text") from None


def parse_float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


CONSTRUCT: dict[str, Callable[[str], Any]] = {
    TAG + "null": lambda _text: None,
    TAG + "bool": lambda text: text.lower() == "true",
    TAG + "int": parse_int,
    TAG + "float": parse_float,
}
