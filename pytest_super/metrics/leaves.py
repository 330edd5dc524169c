"""The values of an answer: with their places, as numbers, and as short texts."""

import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from typing import Any, TypeGuard

from pytest_super.words import shortened

Place = tuple[str | int, ...]

MOST_CHARACTERS = 60
MISSING = object()
"""In place of a value that is not there. Not None, because null is a value."""


def leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """Each value that contains no other, with its place; an empty list or mapping is one of them."""
    return ((place, leaf) for place, leaf, _ in leaves_beside(value, MISSING))


def leaves_beside(value: Any, other: Any) -> Iterator[tuple[Place, Any, Any]]:
    """Each leaf of the value, with its place and what the other value has there, or MISSING.

    Not recursive: agents write values of any depth.
    """
    path = list[str | int]()
    todo = list[tuple[int, Any, Any, Any]]([(0, "", value, other)])
    while todo:
        depth, part, value, other = todo.pop()
        path[depth:] = [part]
        if is_leaf(value):
            yield tuple(path[1:]), value, other
        else:
            children = value.items() if isinstance(value, dict) else enumerate(value)
            todo += reversed([(depth + 1, part, child, part_of(other, part)) for part, child in children])


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


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether it is a finite number that floats can compare. JSON has integers of any size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def exact(number: int | float) -> Fraction:
    """The shortest decimal of a finite number: in binary 0.61 - 0.60 is more than 0.01."""
    # float's own repr: subclasses such as numpy's put a type name around theirs.
    return Fraction(number) if isinstance(number, int) else Fraction(float.__repr__(number))


def brief(value: object) -> str:
    """A value as JSON, without the content of lists and mappings, which can be of any size."""
    if value is MISSING:
        return "missing"
    if isinstance(value, dict | list) and not is_leaf(value):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return json.dumps(short(value), ensure_ascii=False)
    try:
        return short(json.dumps(value))
    except ValueError:
        # Python writes no integer of more than 4,300 digits.
        return "a very long number"


def short(text: str) -> str:
    return shortened(text, MOST_CHARACTERS)
