"""The values of an answer, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str | int, ...]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Each value that is neither a list nor a mapping: these are what accuracy compares."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, (*place, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from leaves(child, (*place, index))
    else:
        yield place, value


def at(value: Any, place: Place, missing: Any) -> Any:
    """The value at a place; `missing` if there is none."""
    for part in place:
        is_there = part in value if isinstance(value, dict) else is_index(part, value)
        if not is_there:
            return missing
        value = value[part]
    return value


def is_index(part: str | int, value: Any) -> bool:
    return isinstance(part, int) and isinstance(value, list) and part < len(value)


def shown(place: Place) -> str:
    """The place as people write it: `test.scores[2]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]
    return "".join(parts).removeprefix(".") or "the answer"
