"""Helpers for JSON values of any depth and origin."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def texts(value: Any, *, keys: bool = False) -> Iterator[str]:
    """The strings in a JSON value, in no particular order; `keys` includes those of mappings."""
    # Iterative, because a request from a sandbox can be nested as deep as the JSON reader allows.
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict | list):
            left.extend(item.values() if isinstance(item, dict) else item)
            left.extend(item if keys and isinstance(item, dict) else ())


def plain(value: Any) -> Any:
    """The same value, made of types that every JSON reader and every UTF-8 file accepts.

    A lone surrogate, which a model can write as an escape, becomes U+FFFD; NaN and the infinities become
    None; a value of any other type becomes its text.
    """
    if isinstance(value, str):
        if value.isascii():
            return value
        # Not UTF-8, which would replace both halves of a pair instead of joining them.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else plain(str(value))
