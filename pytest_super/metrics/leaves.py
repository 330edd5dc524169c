"""The values of an answer, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str | int, ...]


def leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """Each value that contains no other, with its place: the values that metrics compare.

    An empty list or mapping is one of them. Not recursive: agents write values of any depth.
    """
    todo: list[tuple[Place, Any]] = [((), value)]
    while todo:
        place, value = todo.pop()
        if is_leaf(value):
            yield place, value
        else:
            children = value.items() if isinstance(value, dict) else enumerate(value)
            todo += reversed([((*place, part), child) for part, child in children])


def is_leaf(value: Any) -> bool:
    return not isinstance(value, dict | list) or not value


def is_empty(value: Any) -> bool:
    """Whether the value is an empty list or mapping."""
    return isinstance(value, dict | list) and not value


def has_empty(value: Any) -> bool:
    """Whether an empty list or mapping is one of the leaves."""
    return any(is_empty(leaf) for _, leaf in leaves(value))


def shown(place: Place) -> str:
    """The place as people write it: `test.scores[2]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]
    return "".join(parts).removeprefix(".") or "the answer"
