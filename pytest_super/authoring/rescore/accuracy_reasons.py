"""Why the accuracy of a submission differs between the published code and the paper.

The submission is changed step by step until nothing is left in which the two ways treat it differently; each
step that changes the published code's figure is a reason.
"""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pytest_super.metrics.accuracy import TOLERANCE, accuracy, is_right
from pytest_super.metrics.leaves import at, leaves, shown
from pytest_super.metrics.reference import ReferenceScoringError, reference_accuracy

if TYPE_CHECKING:
    from collections.abc import Iterator

_MISSING = object()
SHOWN = 3


def accuracy_reasons(gold: Any, submission: Any, *, tolerance: float = TOLERANCE) -> Iterator[str]:
    """Reasons, from the most outward one, where the accuracies of a submission that was made differ."""
    if not gold:
        yield "the published code takes an answer that is empty, 0 or false for none"
    elif not submission:
        yield "the published code takes a submission that is empty, 0, false or null for none"
    else:
        try:
            yield from steps_between(gold, submission, tolerance)
        except ReferenceScoringError as error:
            yield str(error)


def steps_between(gold: Any, submission: Any, tolerance: float) -> Iterator[str]:
    """Raises ReferenceScoringError where the published scorer dies."""
    reached = reference_accuracy(gold, submission)
    filled = fill(gold, submission)
    if reached != (reached := reference_accuracy(gold, filled)):
        given = [at(submission, place, _MISSING) for place, _ in leaves(gold)]
        missing = sum(value is _MISSING for value in given)
        yield (
            "the published code divides by the submission's number of values, so that what it lacks "
            f"({missing} of {len(given)}) does not count against it"
        )
    trimmed = trim(gold, filled)
    if reached != (reached := reference_accuracy(gold, trimmed)):
        yield "what the submission holds beyond the answer counts against it in the published code"
    if reached != (reached := reference_accuracy(ones(gold), verdicts(gold, trimmed, tolerance))):
        yield from leaf_reasons(gold, trimmed, tolerance)
    if not math.isclose(reached or 0.0, accuracy(gold, submission, tolerance=tolerance), abs_tol=1e-9):
        yield "the published code takes a mean at each list and mapping, the paper counts each value alike"


def leaf_reasons(gold: Any, given: Any, tolerance: float) -> Iterator[str]:
    """For each kind of value on which the two disagree, which those are."""
    kinds: dict[str, list[str]] = {}
    for place, wanted in leaves(gold):
        value = at(given, place, _MISSING)
        if is_right(wanted, value, tolerance) != (reference_accuracy([wanted], [value]) == 1.0):
            told = f"{shown(place)}: {value!r} for {wanted!r}"
            kinds.setdefault(kind_of(wanted, value, tolerance), []).append(told)
    for kind, found in kinds.items():
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield f"{kind}: {', '.join(found[:SHOWN])}{more}"


def kind_of(wanted: Any, value: Any, tolerance: float) -> str:
    """Of two numbers: texts and types are compared alike."""
    if not math.isfinite(wanted) or not math.isfinite(value):
        return "in the published code NaN and infinity equal nothing"
    if is_right(wanted, value, tolerance) != is_right(wanted, value, TOLERANCE):
        return f"the published code knows no tolerance but {TOLERANCE}, and the task's is {tolerance:g}"
    at_the_edge = f"a difference of {TOLERANCE} itself is right"
    return f"{at_the_edge}, and in the published code as the binary fractions fall"


def fill(gold: Any, given: Any) -> Any:
    """`given` with a wrong value wherever it lacks one of the gold's."""
    if isinstance(gold, dict) and isinstance(given, dict):
        filled = {key: fill(value, given.get(key, _MISSING)) for key, value in gold.items()}
        return {**given, **filled}
    if isinstance(gold, list) and isinstance(given, list):
        length = len(gold)
        filled_list = [fill(*pair) for pair in zip_longest(gold, given[:length], fillvalue=_MISSING)]
        return [*filled_list, *given[length:]]
    return wrong(gold) if given is _MISSING else given


def trim(gold: Any, given: Any) -> Any:
    """`given`, which lacks nothing, without what it holds beyond the gold."""
    if isinstance(gold, dict) and isinstance(given, dict):
        return {key: trim(value, given[key]) for key, value in gold.items()}
    if isinstance(gold, list) and isinstance(given, list):
        return [trim(*pair) for pair in zip(gold, given, strict=False)]
    return given


def ones(gold: Any) -> Any:
    """The gold with a value on which there is no disagreement for each of its own."""
    if isinstance(gold, dict):
        return {key: ones(value) for key, value in gold.items()}
    return [ones(value) for value in gold] if isinstance(gold, list) else 1.0


def verdicts(gold: Any, given: Any, tolerance: float) -> Any:
    """What is as right beside the `ones` of the gold as `given`, of the same form, is beside the gold."""
    if isinstance(gold, dict):
        if not isinstance(given, dict):
            return ""
        return {key: verdicts(value, given[key], tolerance) for key, value in gold.items()}
    if isinstance(gold, list):
        if not isinstance(given, list):
            return ""
        return [verdicts(*pair, tolerance) for pair in zip(gold, given, strict=True)]
    return 1.0 if is_right(gold, given, tolerance) else ""


def wrong(gold: Any) -> Any:
    return 0 if isinstance(gold, str) else ""
