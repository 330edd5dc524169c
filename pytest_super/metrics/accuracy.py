"""Accuracy (SUPER, 3.1.2): the portion of the gold answer's values that the submission gets right."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

from pytest_super.json_values import loaded
from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.leaves import (
    MISSING,
    Place,
    brief,
    exact,
    is_empty,
    leaves_beside,
    part_of,
    short,
    shown,
)
from pytest_super.metrics.metric import Metric
from pytest_super.tasks.task import Task

TOLERANCE = 0.01
# That `difference` names.
MOST_VALUES = 3


def accuracy(gold: object, submission: object, *, tolerance: float = TOLERANCE) -> float:
    """The portion, from 0 to 1, of the gold's leaf values that the submission has at the same place.

    A leaf is a number, string, boolean or null, or an empty list or mapping, which only an equal one equals.
    Numbers are right within `tolerance`, absolute and inclusive, compared as the decimals they are written
    as. Strings are stripped and compared with case. Nothing is converted but keys (`part_by_number`). Further
    keys and indices are ignored; missing ones are wrong. Any submission gets a score; none raises.
    """
    verdicts = [leaf.is_right for leaf in judged(gold, submission, tolerance)]
    return sum(verdicts) / len(verdicts)


class Judged(NamedTuple):
    """A leaf of the gold, next to what the submission has in its place."""

    place: Place
    wanted: Any
    given: Any
    """MISSING if there is nothing."""
    is_right: bool


def judged(gold: object, submission: object, tolerance: float) -> Iterator[Judged]:
    """Each leaf of the gold, by the rules of `accuracy`."""
    allowed = exact(float(tolerance))
    for place, wanted, given in leaves_beside(gold, submission):
        if given is MISSING:
            given = reduce(part_by_number, place, submission)
        yield Judged(place, wanted, given, _is_right(wanted, given, allowed))


def part_by_number(value: Any, part: str | int) -> Any:
    """Like `part_of`, but the key `1e-5` is also found as programs write the number into JSON: `1e-05`."""
    found = part_of(value, part)
    if found is MISSING and isinstance(part, str):
        with suppress(ValueError):
            return part_of(value, repr(float(part)))
    return found


def is_right(gold: object, given: object, tolerance: float) -> bool:
    """Whether a value is right for a leaf of the gold, by the rules of `accuracy`."""
    return _is_right(gold, given, exact(float(tolerance)))


def _is_right(gold: object, given: object, allowed: Fraction) -> bool:
    # Before numbers, because True equals 1 in Python.
    if gold is None or isinstance(gold, bool):
        return given is gold
    if is_empty(gold):
        return is_empty(given) and type(gold) is type(given)
    if isinstance(gold, str):
        return isinstance(given, str) and gold.strip() == given.strip()
    if isinstance(gold, int | float) and isinstance(given, int | float) and not isinstance(given, bool):
        return _is_near(gold, given, allowed)
    return False


def _is_near(gold: int | float, given: int | float, allowed: Fraction) -> bool:
    if all(isinstance(number, int) or math.isfinite(number) for number in (gold, given)):
        return abs(exact(gold) - exact(given)) <= allowed
    # JSON's reader accepts NaN, which is right for NaN although Python says that they differ.
    return gold == given or (gold != gold and given != given)


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


def answer_in(task: Task, submission: Any) -> Any:
    """The submission, or the JSON in it if it is a text and the gold answer is none."""
    is_text = isinstance(submission, str) and task.has_answer and not isinstance(task.answer, str)
    return loaded(submission, submission) if is_text else submission


def _of_trial(task: Task, evidence: Evidence) -> float:
    if not evidence.submitted:
        return 0.0
    return accuracy(task.answer, answer_in(task, evidence.submission), tolerance=task.tolerance)


def _version(task: Task) -> int:
    """Version 2 compared empty lists, 3 reads the JSON in texts and finds keys as numbers."""
    return 1 if isinstance(task.answer, str) else 3


ACCURACY = Metric(
    name="accuracy",
    applies=attrgetter("has_answer"),
    compute=_of_trial,
    reference=attrgetter("accuracy"),
    best=1.0,
    version=_version,
    headline_of=frozenset({"expert", "masked", "functions"}),
)
