"""`--super-scoring=reference`: the published scorer's numbers, faults included, to reproduce old results.

It differs from `accuracy`, `landmarks` and `script_executed`: accuracy is divided by the size of the
submission at every even depth of mappings, and a group counts as one value; landmarks are searched in what
the agent was shown; an entrypoint is executed if its file name occurs in a step that took 10 seconds;
pre-executed steps are credited.
"""

import json
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pytest_super.errors import SuperError
from pytest_super.metrics.script_runs.process_runs import may_hide_run
from pytest_super.store.trajectory import PROGRAM, Step

EPSILON = 1e-2
MIN_SECONDS = 10
SCRIPT_SUFFIXES = (".py", ".sh", ".bash")


class ReferenceScoringError(SuperError):
    """The published scorer crashes on this trial and leaves it out of its means."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferenceScores:
    """The metrics of one trial; None if the published scorer has no number."""

    submitted: int | None
    accuracy: float | None
    landmarks: float | None
    script_executed: float | None
    self_report: float | None = None


NO_SCORES = ReferenceScores(submitted=None, accuracy=None, landmarks=None, script_executed=None)
"""For a trial on which the published scorer crashes."""


def reference_scores(
    steps: Sequence[Step],
    *,
    answer: object = None,
    landmarks: Sequence[str] = (),
    entrypoint: str | None = None,
) -> ReferenceScores:
    """All metrics of a trial. `steps` are in order and include the pre-executed ones.

    Raises ReferenceScoringError if the published scorer would raise anything.
    """
    if not steps:
        raise ReferenceScoringError("the published scorer crashes on a trial without steps")
    # The published code accepts a submission only as the last step.
    last = steps[-1]
    submission = _content(last) if last.action.type == "submit" else None
    return ReferenceScores(
        submitted=int(bool(submission)),
        accuracy=reference_accuracy(answer, submission),
        landmarks=reference_landmarks(landmarks, [step.observation for step in steps]),
        script_executed=reference_script_executed(steps, entrypoint),
    )


def reference_accuracy(gold: object, submission: object) -> float | None:
    """Score; None for a falsy gold. A falsy submission counts as missing. Raises ReferenceScoringError."""
    if not gold:
        return None
    try:
        return _match(gold, submission or None)
    except (ArithmeticError, NotImplementedError, RecursionError, ValueError) as error:
        cause = str(error) or type(error).__name__
        raise ReferenceScoringError(f"the published scorer crashes on this submission: {cause}") from None


def _match(walked: object, measured: object) -> float:
    """Divides by the length of `measured`. The two swap roles inside a mapping, but not inside a list."""
    # Not `isinstance`, because the published code does not convert booleans.
    if type(walked) is int:
        walked = float(walked)
    if type(measured) is int:
        measured = float(measured)
    if type(walked) is not type(measured):
        return 0.0
    if isinstance(walked, list) and isinstance(measured, list):
        return _mean([_match(a, b) for a, b in zip(walked, measured, strict=False)], len(measured))
    if isinstance(walked, dict) and isinstance(measured, dict):
        return _mean([_match(value, walked.get(key)) for key, value in measured.items()], len(measured))
    return _match_leaf(walked, measured)


def _match_leaf(one: object, other: object) -> float:
    if isinstance(one, str) and isinstance(other, str):
        return float(one.strip() == other.strip())
    if isinstance(one, float) and isinstance(other, float):
        # `<` and binary fractions are as published; `accuracy` includes the tolerance itself.
        return float(abs(one - other) < EPSILON)
    raise NotImplementedError(f"a value of type {type(one).__name__}")


def _mean(scores: Iterable[float], count: int) -> float:
    if count == 0:
        raise ValueError("an empty list or mapping")
    # Not sum(): since Python 3.12 it rounds differently from the Python that made the published numbers.
    total = 0.0
    for score in scores:
        total += score
    return total / count


def reference_landmarks(patterns: Sequence[str], observations: Sequence[str]) -> float | None:
    """Score; None without patterns. Raises ReferenceScoringError for an invalid pattern."""
    if not patterns:
        return None
    lines = [observation.replace("\n", " ") for observation in observations]
    try:
        hits = [any(re.search(pattern, line) for line in lines) for pattern in patterns]
    except re.error as error:
        raise ReferenceScoringError(f"the published scorer crashes on a landmark: {error}") from None
    return sum(hits) / len(hits)


def reference_script_executed(steps: Sequence[Step], entrypoint: str | None) -> float | None:
    """Score; None without an entrypoint and for one that is neither a Python nor a shell script.

    None instead of 0.0, too, if a program may have run it unseen.

    Raises ReferenceScoringError if a number or boolean was submitted before any success.
    """
    if not entrypoint or not entrypoint.endswith(SCRIPT_SUFFIXES):
        return None
    name = posixpath.basename(entrypoint)
    seen = [step for step in steps if step.action.type != PROGRAM]
    if any(_mentions(step, name) and _went_well(step, name) for step in seen):
        return 1.0
    return None if any(may_hide_run(step, MIN_SECONDS) for step in steps) else 0.0


def _mentions(step: Step, name: str) -> bool:
    content = _content(step)
    if not content:
        return False
    if not isinstance(content, str | list | dict):
        raise ReferenceScoringError(f"the published scorer crashes on the submission {content}")
    module = name.replace(".py", "").replace("/", ".")
    return name in content or (module in content and "python -m" in content)


def _went_well(step: Step, name: str) -> bool:
    if "Traceback" in step.observation or f"{name}: error" in step.observation:
        return False
    if not step.started:
        return step.seconds >= MIN_SECONDS
    # The whole step: edits have a duration too.
    whole = datetime.fromisoformat(step.ended) - datetime.fromisoformat(step.started)
    return whole.total_seconds() >= MIN_SECONDS


def _content(step: Step) -> object:
    """The action's text; in a submit step the value, as in the published trajectories."""
    if step.action.type != "submit":
        return step.action.content
    try:
        return json.loads(step.action.content)
    except ValueError:
        return step.action.content
