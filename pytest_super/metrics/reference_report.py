"""`--super-scoring=reference` for the items of papers: the published rule on the agent's own report.

AutoExperiment (arXiv 2506.19724) runs nothing again. Of each value it takes the difference from the expected
one, divided by the expected one; an experiment is right if the mean of these is at most 5 %, and a trial
passes if all experiments are right. As published, a negative expected value makes the difference negative, an
expected zero makes it 1, and a list is compared as far as the reported one goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean
from typing import Any

from pytest_super.json_values import loaded
from pytest_super.metrics.self_report import expected_report
from pytest_super.tasks.paper import Experiment

LARGEST_LOSS = 0.05


def reference_report(experiments: Iterable[Experiment], submission: Any) -> float:
    """1 if the published code lets the report pass, else 0."""
    report = read(submission)
    passed = [is_right(wanted, part(report, name)) for name, wanted in expected_report(experiments).items()]
    return float(bool(passed) and all(passed))


def read(reported: Any) -> Any:
    """The published code reads each text as JSON, without fences or other quotes; None if it is none."""
    return loaded(reported) if isinstance(reported, str) else reported


def part(report: Any, name: str) -> Any:
    return read(report.get(name)) if isinstance(report, dict) else None


def is_right(wanted: Any, found: Any) -> bool:
    losses = list(losses_of(wanted, found))
    return bool(losses) and fmean(losses) <= LARGEST_LOSS


def losses_of(wanted: Any, found: Any) -> Iterator[float]:
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            yield from losses_of(value, part(found, name))
    elif isinstance(wanted, list):
        if not isinstance(found, list):
            yield 1.0
            return
        for value, other in zip(wanted, found, strict=False):
            yield from losses_of(value, read(other))
    else:
        try:
            loss = float(abs(wanted - found) / wanted)
        except (TypeError, ZeroDivisionError, OverflowError):
            loss = 1.0
        yield loss
