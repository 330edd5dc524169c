"""The values of an answer, with their places."""

from collections.abc import Iterator
from functools import reduce
from typing import Any, TypeAlias

Place = tuple[str | int, ...]
# A place as its last part after the link of the place before: values of any depth have places of any length.
Link: TypeAlias = "tuple[Link, str | int] | None"

MISSING = object()
"""In place of a value that is not there. Not None, because null is a value."""


def leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """Each value that contains no other, with its place; an empty list or mapping is one of them."""
    return ((place, leaf) for place, leaf, _ in leaves_beside(value, MISSING))


def leaves_beside(value: Any, other: Any) -> Iterator[tuple[Place, Any, Any]]:
    """Each leaf of the value, with its place and what the other value has there, or MISSING.

    Not recursive: agents write values of any depth.
    """
    todo: list[tuple[Link, Any, Any]] = [(None, value, other)]
    while todo:
        link, value, other = todo.pop()
        if is_leaf(value):
            yield place_of(link), value, other
        else:
            children = value.items() if isinstance(value, dict) else enumerate(value)
            todo += reversed([((link, part), child, part_of(other, part)) for part, child in children])


def place_of(link: Link) -> Place:
    parts = []
    while link is not None:
        link, part = link
        parts.append(part)
    return tuple(reversed(parts))


def value_at(value: Any, place: Place) -> Any:
    """The value at a place, or MISSING."""
    return reduce(part_of, place, value)


def part_of(value: Any, part: str | int) -> Any:
    if isinstance(value, dict) and isinstance(part, str):
        return value.get(part, MISSING)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return MISSING


def is_leaf(value: Any) -> bool:
    return not isinstance(value, dict | list) or not value


def is_empty(value: Any) -> bool:
    """Whether the value is an empty list or mapping."""
    return isinstance(value, dict | list) and not value


def shown(place: Place) -> str:
    """The place as people write it: `test.scores[2]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]
    return "".join(parts).removeprefix(".") or "the answer"
