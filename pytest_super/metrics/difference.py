"""What a wrong submission has in place of the gold answer's values, in a text of bounded size."""

import json

from pytest_super.metrics.accuracy import judged
from pytest_super.metrics.leaves import MISSING, is_leaf, shown
from pytest_super.words import shortened

MOST_VALUES = 3
MOST_CHARACTERS = 60


def difference(gold: object, submission: object, tolerance: float) -> str:
    """The values that are wrong by the rules of accuracy: `test.f1 is 0.2, not 0.5; n is missing, not 7`."""
    wrong = [leaf for leaf in judged(gold, submission, tolerance) if not leaf.is_right]
    parts = [
        f"{short(shown(leaf.place))} is {brief(leaf.given)}, not {brief(leaf.wanted)}"
        for leaf in wrong[:MOST_VALUES]
    ]
    if len(wrong) > MOST_VALUES:
        parts.append(f"and {len(wrong) - MOST_VALUES} more")
    return "; ".join(parts)


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
