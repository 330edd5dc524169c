"""Checks for the recorded results of an experiment.

The records do not say how a value is found in the output of a command, so the patterns are guessed from the
names of the values.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from pytest_super.metrics.numbers import is_number

# The tolerance of the published evaluation.
REL = 0.05
# On the same line, because a value that is not a number would else be taken from the next line.
_NUMBER = r"[^\d\n]*?([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
# What has no value to check is checked by the exit code.
EXIT_ONLY = [{"exit": 0}]


def recorded_numbers(result: Any) -> dict[str, int | float]:
    """The numbers by name. Raises ValueError if the result is not a mapping of names to numbers."""
    value = parsed(result) if isinstance(result, str) else result
    if not isinstance(value, dict) or not value:
        raise ValueError("the recorded result is not a mapping of names to numbers")
    return {checked_name(name): number_of(name, one) for name, one in value.items()}


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


def number_of(name: Any, value: Any) -> int | float:
    """The number; a list with one number counts as the number."""
    if isinstance(value, list | tuple) and len(value) == 1:
        (value,) = value
    if not is_number(value):
        raise ValueError(f"`{name}` of the recorded result is not a number")
    return value


def checks_of(numbers: dict[str, int | float]) -> list[dict[str, Any]]:
    return [
        {"name": name, "regex": {"pattern": pattern_of(name)}, "expected": number, "rel": REL}
        for name, number in numbers.items()
    ]


def pattern_of(name: str) -> str:
    """The name as a whole word, then the next number on its line."""
    return rf"(?<![\w-]){re.escape(name)}(?![\w-]){_NUMBER}"
