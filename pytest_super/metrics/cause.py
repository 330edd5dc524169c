"""The cause of a miss: one of a closed list, by rules, from what the result of a trial says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

from pytest_super.metrics.accuracy import Judged, answer_in, is_right, judged
from pytest_super.metrics.leaves import MISSING, exact, is_number, leaves
from pytest_super.metrics.script_executed import SCRIPT_EXECUTED
from pytest_super.store.results import TrialResult
from pytest_super.tasks.task import Task


class Cause(StrEnum):
    """The causes in the order of looking: the first that fits is the cause."""

    RAISED = "agent failed"
    GAVE_UP = "gave up"
    IN_SIGHT = "budget spent, answer in sight"
    SPENT = "budget spent"
    ROUNDED = "rounded value"
    UNIT = "other unit"
    KEY = "other key"
    FORMAT = "other format"
    UNKNOWN = "the task has no answer yet"
    NOT_RUN = "script not run"
    VALUE = "wrong value"


# Between percent and portion, units of data, of time, and by thousands.
FACTORS = (100, 1000, 10**6, 10**9, 1024, 1024**2, 1024**3, 60, 3600)
# Of one significant digit, any number is nearly the rounded value.
LEAST_DIGITS = 2
# With a sign of percent, or commas between thousands.
NUMBER = re.compile(r"[-+]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)? ?%?")
# As Python writes them.
WORDS = {"true": "true", "false": "false", "none": "null", "null": "null"}


def cause_of(task: Task, result: TrialResult, submission: Any) -> str:
    """Why the task is not solved; "" for a trial that is solved or not scored."""
    if result.solved or not result.is_scored:
        return ""
    # Not the member of the enumeration, because xdist sends plain texts alone.
    return (of_submission(task, result, submission) if result.submitted else without_submission(result)).value


def of_submission(task: Task, result: TrialResult, submission: Any) -> Cause:
    if task.answer_unknown:
        return Cause.UNKNOWN
    if result.text_read:
        submission = answer_in(task, submission)
    if task.has_answer:
        if submission is None and task.answer is not None:
            return Cause.GAVE_UP
        wrong = [leaf for leaf in judged(task.answer, submission, task.tolerance) if not leaf.is_right]
        for cause, explains in EXPLANATIONS.items():
            if wrong and explains(task, wrong, submission):
                return cause
    return Cause.NOT_RUN if result.metrics.get(SCRIPT_EXECUTED.name) == 0.0 else Cause.VALUE


def without_submission(result: TrialResult) -> Cause:
    if result.stop_reason == "agent_error":
        return Cause.RAISED
    if result.stop_reason == "returned":
        return Cause.GAVE_UP
    found = [landmark["step"] is not None for landmark in result.landmarks_found]
    return Cause.IN_SIGHT if found and all(found) else Cause.SPENT


def is_rounded(_task: Task, wrong: Sequence[Judged], _submission: Any) -> bool:
    """Whether each wrong value is the right one with fewer digits, or the other way round."""
    return all(is_rounding(leaf.wanted, leaf.given) or is_rounding(leaf.given, leaf.wanted) for leaf in wrong)


def is_rounding(value: Any, rounded: Any) -> bool:
    if not (is_number(value) and is_number(rounded)) or digits_of(rounded) < LEAST_DIGITS:
        return False
    return bool(abs(exact(value) - exact(rounded)) <= Fraction(1, 2) / 10 ** decimals_of(rounded))


def is_other_unit(task: Task, wrong: Sequence[Judged], _submission: Any) -> bool:
    """Whether one factor between units makes all wrong values right, to the digits that are given."""
    factors = [factor for one in FACTORS for factor in (Fraction(one), Fraction(1, one))]
    return any(all(is_right_times(factor, leaf, task.tolerance) for leaf in wrong) for factor in factors)


def is_right_times(factor: Fraction, leaf: Judged, tolerance: float) -> bool:
    given, wanted = leaf.given, leaf.wanted
    if not (is_number(given) and is_number(wanted) and given):
        return False
    allowed = max(exact(tolerance), factor / 2 / 10 ** decimals_of(given))
    # An allowance as large as the value would make any number right.
    return bool(abs(exact(given) * factor - exact(wanted)) <= min(allowed, abs(exact(wanted)) / 10))


def has_other_keys(task: Task, wrong: Sequence[Judged], submission: Any) -> bool:
    """Whether all wrong values are missing, and the submission has each elsewhere."""
    if any(leaf.given is not MISSING for leaf in wrong):
        return False
    own = {place for place, _ in leaves(task.answer)}
    others = [value for place, value in leaves(submission) if place not in own]
    for leaf in wrong:
        found = (place for place, value in enumerate(others) if is_right(leaf.wanted, value, task.tolerance))
        if (place := next(found, None)) is None:
            return False
        del others[place]
    return True


def has_other_format(task: Task, _wrong: Sequence[Judged], submission: Any) -> bool:
    """Whether the answer is right once texts are read and what wraps it is taken off."""
    try:
        wanted, given = plain(task.answer), plain(submission)
    except RecursionError:
        return False
    return all(leaf.is_right for leaf in judged(wanted, given, task.tolerance))


def plain(value: Any) -> Any:
    """Drop case and what wraps a single value, and read texts of numbers and of JSON."""
    if isinstance(value, str):
        return read(value.strip())
    if isinstance(value, list | dict) and len(value) == 1:
        return plain(next(iter(value.values() if isinstance(value, dict) else value)))
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def read(text: str) -> Any:
    if NUMBER.fullmatch(text):
        text = text.rstrip("% ").replace(",", "")
    try:
        value = json.loads(WORDS.get(text.casefold(), text))
    except (ValueError, RecursionError):
        return text.strip("'\"").casefold()
    return value.strip().casefold() if isinstance(value, str) else plain(value)


def decimals_of(number: float) -> int:
    """Digits after the point, as the number is written, without zeros at the end."""
    return max(-int(Decimal(float.__repr__(float(number))).normalize().as_tuple().exponent), 0)


def digits_of(number: float) -> int:
    """Significant ones."""
    whole = abs(exact(number)) * 10 ** decimals_of(number)
    return len(str(int(whole))) if whole else 0


EXPLANATIONS: dict[Cause, Callable[[Task, Sequence[Judged], Any], bool]] = {
    Cause.ROUNDED: is_rounded,
    Cause.UNIT: is_other_unit,
    Cause.KEY: has_other_keys,
    Cause.FORMAT: has_other_format,
}
