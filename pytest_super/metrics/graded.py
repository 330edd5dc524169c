"""Graded: what the values of a task's grader yield, by default the portion of them that are right.

A value is compared with what a check expects; the reports of agents are compared in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from statistics import fmean
from typing import Any

from pytest_super.metrics.evidence import Evidence, GradedValue
from pytest_super.metrics.leaves import (
    Place,
    brief,
    exact,
    is_empty,
    is_number,
    leaves,
    leaves_beside,
    short,
    shown,
)
from pytest_super.metrics.metric import Metric
from pytest_super.tasks.grade import Check
from pytest_super.tasks.task import Task

# Values beyond the expected ones, each of which is wrong.
MOST_EXTRA = 10


class NoValue(Exception):
    """There is no value to compare; the text says why."""


def version_of(checks: Iterable[Check]) -> int:
    """In version 1 an empty list or mapping was not compared, neither an expected nor a further one."""
    return 2 if any(isinstance(check.expected, dict | list) for check in checks) else 1


def name_of(check: Check) -> str:
    if check.name:
        return check.name
    if check.json_ is not None:
        return f"{check.json_.file}{check.json_.pointer}"
    if check.regex is not None:
        return short(check.regex.pattern)
    return "exit code" if check.source == "exit" else str(getattr(check, check.source))


def compared(check: Check, found: Any) -> Iterator[GradedValue]:
    """The value next to what it should be; for an expected list or mapping, each value in it."""
    name = name_of(check)
    if check.has_expected:
        yield from against_expected(check, name, found)
    elif check.interval is not None:
        low, high = check.interval
        is_inside = is_number(found) and low <= found <= high
        yield graded(name, is_inside, found, f"{low:g} to {high:g}")
    elif not (is_number(found) and 0 <= found <= 1):
        raise NoValue(f"{brief(found)} is not a number from 0 to 1")
    else:
        yield GradedValue(name=name, score=float(found), found=brief(found))


def against_expected(check: Check, name: str, found: Any) -> Iterator[GradedValue]:
    places = set()
    for place, wanted, value in leaves_beside(check.expected, found):
        places.add(place)
        yield graded(place_name(name, place), is_right(value, wanted, check), value, brief(wanted))
    for place, value in islice(further(found, places), MOST_EXTRA):
        yield graded(place_name(name, place), False, value, "nothing")


def further(found: Any, places: Collection[Place]) -> Iterator[tuple[Place, Any]]:
    """The leaves that are at none of the expected places.

    An empty list or mapping around such a place is not one of them: the values in it are missing already.
    """
    around = {place[:length] for place in places for length in range(len(place))}
    for place, value in leaves(found):
        if place not in places and not (is_empty(value) and place in around):
            yield place, value


def graded(name: str, is_right: bool, found: Any, expected: str) -> GradedValue:
    return GradedValue(name=name, score=float(is_right), found=brief(found), expected=expected)


def place_name(name: str, place: tuple[str | int, ...]) -> str:
    return short(f"{name} {shown(place)}" if place else name)


def is_right(found: Any, wanted: Any, check: Check) -> bool:
    """Numbers within `max(rel * |wanted|, abs)`, texts without blanks around them, others only if equal."""
    if is_number(wanted):
        allowed = max(exact(check.rel) * abs(exact(wanted)), exact(check.abs))
        return is_number(found) and abs(exact(found) - exact(wanted)) <= allowed
    if isinstance(wanted, str) and isinstance(found, str):
        one, other = found.strip(), wanted.strip()
        return one.casefold() == other.casefold() if check.ignore_case else one == other
    return type(found) is type(wanted) and bool(found == wanted)


# The metric


def of_trial(task: Task, evidence: Evidence) -> float | None:
    """Score a trial; None if it was stored without the values of its grader."""
    assert task.grade is not None
    return AGGREGATIONS[task.grade.aggregate](evidence.graded) if evidence.graded else None


def version(task: Task) -> int:
    assert task.grade is not None
    commands = (command for _, one in task.grade.steps() for command in one.commands)
    return version_of(check for command in commands for check in command.checks)


def all_right(values: Sequence[GradedValue]) -> float:
    return float(all(value.score == 1 for value in values))


def portion_right(values: Sequence[GradedValue]) -> float:
    return fmean(value.score for value in values)


def mean_of_commands(values: Sequence[GradedValue]) -> float:
    commands = dict.fromkeys(value.command for value in values)
    return fmean(portion_right([one for one in values if one.command == name]) for name in commands)


AGGREGATIONS = {"all": all_right, "mean": mean_of_commands, "fraction": portion_right}

GRADED = Metric(
    name="graded", applies=lambda task: task.grade is not None, compute=of_trial, best=1.0, version=version
)
