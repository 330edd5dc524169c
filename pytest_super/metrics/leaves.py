"""The values of an answer, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str | int, ...]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Each value that is neither a list nor a mapping, with its place. Accuracy compares these values."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, (*place, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from leaves(child, (*place, index))
    else:
        yield place, value


def shown(place: Place) -> str:
    """The place as people write it: `test.scores[2]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]
    return "".join(parts).removeprefix(".") or "the answer"
