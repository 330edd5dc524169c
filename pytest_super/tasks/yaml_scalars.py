"""Scalars of YAML: which texts without quotes are not strings, and the values of all.

PyYAML's own rules would change answers (`5e-05` and `1e-3` become strings, `no` becomes False, `1:30` becomes
90), so these are the rules of JSON and of the core schema of YAML 1.2.
"""

import re
from collections.abc import Callable
from typing import Any

TAG = "tag:yaml.org,2002:"
STR = TAG + "str"


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


DECIMAL = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
# The texts of each tag, and their values.
PLAIN: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    # The last alternative is empty: a key without a value is null.
    TAG + "null": (re.compile("~|null|Null|NULL|"), lambda _text: None),
    TAG + "bool": (re.compile("true|True|TRUE|false|False|FALSE"), lambda text: text.lower() == "true"),
    TAG + "int": (re.compile("[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"), parse_int),
    TAG + "float": (re.compile(rf"{DECIMAL}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), parse_float),
}
# The first characters of plain scalars that are not strings.
SPECIAL = frozenset("~nNtTfF-+.0123456789")


def tag_of(text: str) -> str:
    """The tag of a scalar without quotes and without a tag of its own."""
    return next((tag for tag, (pattern, _) in PLAIN.items() if pattern.fullmatch(text)), STR)


def construct(tag: str, text: str) -> Any:
    """The value of a scalar. Raises ValueError, also for an explicit tag that does not fit the text."""
    if tag == STR:
        return text
    if tag not in PLAIN:
        raise ValueError(unknown_tag(tag))
    pattern, value_of = PLAIN[tag]
    if not pattern.fullmatch(text):
        raise ValueError(f"`{text[:40]}` is not a {tag.replace(TAG, '!!')}")
    return value_of(text)


def unknown_tag(tag: str) -> str:
    return f"the tag {tag.replace(TAG, '!!')} is not supported here"
