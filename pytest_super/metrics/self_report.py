"""Self-report: the portion of the experiments' values that the agent's own report has right.

AutoExperiment's published score is made of this report (arXiv 2506.19724). Here it is a second figure: what
the agent says, next to what its code yields when somebody else runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from statistics import fmean
from typing import Any

from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.graded import NoValue, compared, version_of
from pytest_super.metrics.metric import Metric
from pytest_super.store.step_values import parse_value
from pytest_super.tasks.grade import Check
from pytest_super.tasks.paper import Experiment
from pytest_super.tasks.task import Task

_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)


def expected_report(experiments: Iterable[Experiment]) -> dict[str, Any]:
    """What a report should be; of an interval, its middle."""
    return {
        one.name: (
            expected(one.reported[""])
            if "" in one.reported
            else {name: expected(check) for name, check in one.reported.items()}
        )
        for one in experiments
        if one.reported
    }


def expected(check: Check) -> Any:
    return check.expected if check.interval is None else sum(check.interval) / 2


def portion_right(task: Task, evidence: Evidence) -> float:
    if not evidence.submitted:
        return 0.0
    return fmean(scores(task.experiments, parsed(evidence.submission)))


def scores(experiments: Iterable[Experiment], report: Any) -> Iterator[float]:
    """1 or 0 for each value that the report should have."""
    for experiment in experiments:
        part = at(report, experiment.name)
        for name, check in experiment.reported.items():
            yield from scores_of(check, at(part, name) if name else part)


def scores_of(check: Check, found: Any) -> Iterator[float]:
    found = shaped(found, check.expected if check.has_expected else 0.0)
    try:
        yield from [value.score for value in compared(check, found)]
    except NoValue:
        yield 0.0


def at(report: Any, name: str) -> Any:
    return parsed(report.get(name)) if isinstance(report, dict) else None


def parsed(value: Any) -> Any:
    """The value in a text: in a code fence, as JSON or as Python writes it. Else the text itself."""
    if not isinstance(value, str):
        return value
    text = fenced[1] if (fenced := _FENCE.fullmatch(value)) else value
    try:
        return parse_value(text.strip())
    except ValueError:
        return value


def shaped(found: Any, wanted: Any) -> Any:
    """The found value without the differences that do not matter: lists of one element, quoted numbers."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return found
        return {key: shaped(value, wanted.get(key)) for key, value in found.items()}
    if isinstance(wanted, list):
        if len(wanted) == 1 and not isinstance(found, list):
            found = [found]
        if not isinstance(found, list) or len(found) != len(wanted):
            return found
        return [shaped(one, other) for one, other in zip(found, wanted, strict=True)]
    while isinstance(found, list) and len(found) == 1:
        found = found[0]
    return found if isinstance(wanted, str) else parsed(found)


def version(task: Task) -> int:
    return version_of(check for one in task.experiments for check in one.reported.values())


SELF_REPORT = Metric(
    name="self_report",
    applies=lambda task: any(one.reported for one in task.experiments),
    compute=portion_right,
    reference=attrgetter("self_report"),
    best=1.0,
    version=version,
)
