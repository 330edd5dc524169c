"""Checks for recorded results, by patterns that are guessed from the names of the values."""

import ast
import json
import re
from itertools import permutations
from typing import Any

from pytest_super.metrics.leaves import is_number

# The tolerance of the published evaluation.
REL = 0.05
# On the same line, and also `nan`: else another value would be taken, from the next line or from this one.
_NUMBER = (
    r"[^\d\n]{0,200}?((?<![^\W_])(?i:nan|inf|infinity)(?![^\W_])|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
)
# What follows `Time` is how long the value took.
_NO_TIME = r"(?<![Tt]ime )"
_BETWEEN = r"(?:[^\w\n]|_)*"
# Of several values the last one is taken anyway.
_LAST = frozenset({"last", "final"})
# More words have too many orders.
_MOST_WORDS = 3
# What has no value to check is checked by the exit code.
EXIT_ONLY = [{"exit": 0}]


def recorded_numbers(result: Any) -> dict[str, Any]:
    """The numbers by name, or lists of one, as reports state them. Raises ValueError for anything else."""
    value = parsed(result) if isinstance(result, str) else result
    if not isinstance(value, dict) or not value:
        raise ValueError("the recorded result is not a mapping of names to numbers")
    return {checked_name(name): checked(name, one) for name, one in value.items()}


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError("the recorded result is neither JSON nor a Python literal") from None


def checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"the recorded result has {name!r} as a name")
    return name


def checked(name: Any, value: Any) -> Any:
    is_list = isinstance(value, list | tuple) and len(value) == 1
    if not is_number(value[0] if is_list else value):
        raise ValueError(f"`{name}` of the recorded result is not a number")
    return list(value) if is_list else value


def checks_of(numbers: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": name, "regex": {"pattern": pattern_of(name)}, "expected": number, "rel": REL}
        for name, number in numbers.items()
    ]


def pattern_of(name: str) -> str:
    """The name as a whole word, else its words in any order and case, then the next number on its line."""
    exact = rf"{_NO_TIME}(?<![\w-]){re.escape(name)}(?![\w-])"
    # The code may not print `last` and `final`.
    every = re.findall(r"[^\W_]+", name)
    words = [word for word in every if word.lower() not in _LAST] or every
    if sum(map(len, words)) < 2:
        # A single letter is a word of many texts.
        return exact + _NUMBER
    orders = permutations(words) if len(words) <= _MOST_WORDS else [words]
    any_order = "|".join(dict.fromkeys(_BETWEEN.join(map(re.escape, order)) for order in orders))
    loose = rf"{_NO_TIME}(?i:(?<![^\W_])(?:{any_order})(?![^\W_]))"
    return rf"\A(?:(?s:.*){exact}|(?s:.*){loose}){_NUMBER}"
