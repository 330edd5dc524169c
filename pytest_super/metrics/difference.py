"""What a wrong submission has in place of the gold answer's values, in a text of bounded size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_super.metrics.accuracy import is_right
from pytest_super.metrics.leaves import is_leaf, leaves, shown

if TYPE_CHECKING:
    from pytest_super.metrics.leaves import Place

MOST_VALUES = 3
MOST_CHARACTERS = 60
MISSING = object()
"""In place of a value that is not there."""


def difference(gold: object, submission: object, tolerance: float) -> str:
    """The values that are wrong by the rules of accuracy: `test.f1 is 0.2, not 0.5; n is missing, not 7`."""
    wrong = [
        (place, wanted)
        for place, wanted in leaves(gold)
        if not is_right(wanted, value_at(submission, place), tolerance)
    ]
    parts = [
        f"{clipped(shown(place))} is {brief(value_at(submission, place))}, not {brief(wanted)}"
        for place, wanted in wrong[:MOST_VALUES]
    ]
    if len(wrong) > MOST_VALUES:
        parts.append(f"and {len(wrong) - MOST_VALUES} more")
    return "; ".join(parts)


def value_at(value: object, place: Place) -> object:
    """The value at a place of the gold. Not recursive: a submission can be nested very deeply."""
    for part in place:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return MISSING
    return value


def brief(value: object) -> str:
    """A value as JSON, without the content of lists and mappings, which can be of any size."""
    if value is MISSING:
        return "missing"
    if isinstance(value, dict | list) and not is_leaf(value):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return json.dumps(clipped(value), ensure_ascii=False)
    try:
        return clipped(json.dumps(value))
    except ValueError:
        # Python writes no integer of more than 4,300 digits.
        return "a very long number"


def clipped(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
