"""Accuracy (SUPER, 3.1.2): the portion of the gold answer's values that the submission answers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Linked from leaf to root: as whole tuples, the paths of a deep answer would take quadratic memory.
Path = tuple["Path", str | int] | None

TOLERANCE = 0.01
_MISSING = object()


def accuracy(gold: object, submission: object, *, tolerance: float = TOLERANCE) -> float:
    """The portion, from 0 to 1, of the gold's leaf values that stand at the same place in the submission.

    A leaf is a number, string, boolean or null; a gold that is no list or mapping is one leaf. Numbers
    are right within `tolerance`, absolute and inclusive, compared as the decimals they are written as;
    strings are stripped and case-sensitive; nothing is converted. What the submission holds beyond the
    gold's keys and indices does no harm, what it lacks is wrong. Any submission is scored, none raises.

    Raises ValueError when the gold holds no leaf.
    """
    verdicts = [right for _, right in _compare(gold, submission, tolerance)]
    if not verdicts:
        raise ValueError("the gold answer holds no value to compare")
    return sum(verdicts) / len(verdicts)


def wrong_leaves(gold: object, submission: object, *, tolerance: float = TOLERANCE) -> list[str]:
    """Paths of the gold's leaves that the submission misses, in the gold's order: `test.f1`, `runs[2].id`.

    The path of a gold that is itself a leaf is `.`.
    """
    return [_path_text(path) for path, right in _compare(gold, submission, tolerance) if not right]


def _compare(gold: object, submission: object, tolerance: float) -> Iterator[tuple[Path, bool]]:
    allowed = Fraction(float.__repr__(float(tolerance)))
    # Not recursive: answers may be nested deeper than the interpreter's stack.
    todo: list[tuple[Path, object, object]] = [(None, gold, submission)]
    while todo:
        path, wanted, given = todo.pop()
        if isinstance(wanted, dict):
            todo.extend(((path, key), wanted[key], _at_key(given, key)) for key in reversed(wanted))
        elif isinstance(wanted, list):
            indices = range(len(wanted) - 1, -1, -1)
            todo.extend(((path, index), wanted[index], _at_index(given, index)) for index in indices)
        else:
            yield path, _is_right(wanted, given, allowed)


def _at_key(value: object, key: str) -> object:
    return value.get(key, _MISSING) if isinstance(value, dict) else _MISSING


def _at_index(value: object, index: int) -> object:
    return value[index] if isinstance(value, list) and index < len(value) else _MISSING


def _is_right(gold: object, given: object, allowed: Fraction) -> bool:
    if gold is None or isinstance(gold, bool):
        return given is gold
    if isinstance(gold, str):
        return isinstance(given, str) and gold.strip() == given.strip()
    if isinstance(gold, int | float) and isinstance(given, int | float) and not isinstance(given, bool):
        return _is_near(gold, given, allowed)
    return False


def _is_near(gold: int | float, given: int | float, allowed: Fraction) -> bool:
    exact, other = _exact(gold), _exact(given)
    if exact is None or other is None:
        return gold == given or (gold != gold and given != given)
    return abs(exact - other) <= allowed


def _exact(number: int | float) -> Fraction | None:
    """As its shortest decimal (in binary 0.61 - 0.60 is more than 0.01); None if it is not finite."""
    if isinstance(number, int):
        return Fraction(number)
    # float's own repr: subclasses such as numpy's write a type name around theirs.
    return Fraction(float.__repr__(number)) if math.isfinite(number) else None


def _path_text(path: Path) -> str:
    keys: list[str] = []
    while path is not None:
        path, key = path
        keys.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(keys)).removeprefix(".") or "."
