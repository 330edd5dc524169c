"""Helpers for JSON values of any depth and origin."""

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any


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


def is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none in anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def object_in(value: Any, name: str) -> dict[str, Any]:
    """The object in a field; an empty one if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def parts_in(value: Any, fields: tuple[str, ...] | None = None) -> Iterator[dict[str, Any]]:
    """The objects of a prompt: those in its lists, and in these fields of each; None for all fields."""
    # Iterative, because a request from a sandbox can be nested as deep as the JSON reader allows.
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, list):
            left.extend(item)
        elif isinstance(item, dict):
            yield item
            left.extend(item.values() if fields is None else (item[name] for name in fields if name in item))


def loaded(text: str | bytes, default: Any = None) -> Any:
    """The value of JSON, `default` for a text that is none, or that is nested too deep."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def load_object(text: Any) -> dict[str, Any]:
    """The arguments of a tool as an object, which some protocols state as text."""
    try:
        value = json.loads(text or "{}")
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
