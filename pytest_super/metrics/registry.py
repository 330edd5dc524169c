"""The registry: the metrics that ship, those of installed packages, and those of a project's conftest.

To add a metric that ships, write one file in this folder and put its entry into `BUILT_IN`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import entry_points
from math import isfinite
from numbers import Real
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.metrics.accuracy import ACCURACY, answer_in, difference
from pytest_super.metrics.evidence import Evidence
from pytest_super.metrics.graded import GRADED
from pytest_super.metrics.landmarks import LANDMARKS
from pytest_super.metrics.metric import Metric
from pytest_super.metrics.reference import ReferenceScores
from pytest_super.metrics.script_executed import SCRIPT_EXECUTED, entrypoint_run
from pytest_super.metrics.script_runs.process_runs import ProcessRun
from pytest_super.metrics.self_report import SELF_REPORT
from pytest_super.metrics.submitted import SUBMITTED
from pytest_super.metrics.suspect import SUSPECT
from pytest_super.store.results import result_fields
from pytest_super.store.trajectory import TOLD
from pytest_super.tasks.task import Task

GROUP = "pytest_super.metrics"
"""The entry points by which packages offer metrics."""

PAPER, REFERENCE = "paper", "reference"
SCORINGS = (PAPER, REFERENCE)
"""The values of `--super-scoring`."""

BUILT_IN = (ACCURACY, LANDMARKS, SUBMITTED, SCRIPT_EXECUTED, GRADED, SELF_REPORT, SUSPECT)
"""In the order of the columns."""

RESERVED = {one.name for one in result_fields() if one.junit}
RESERVED |= {"scoring", "epochs", "trials", "errors", "trajectory"}
"""Names that JUnit XML uses for other figures."""

Scores = dict[str, float | None]


@cache
def installed_metrics() -> tuple[Metric, ...]:
    """The metrics that ship and those of installed packages. Raises SuperError."""
    # By name, because packages are found in no fixed order.
    offered = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    found = list(BUILT_IN)
    for entry in offered:
        try:
            found.append(entry.load())
        except (ImportError, AttributeError) as error:
            raise SuperError(f"the metric `{entry.value}` cannot be imported: {error}") from error
    return checked(found)


def checked(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """The metrics, if they can be used together. Raises SuperError."""
    found = tuple(metrics)
    for metric in found:
        if not isinstance(metric, Metric):
            raise SuperError(f"{metric!r} is not a pytest_super.metrics.Metric")
        if not re.fullmatch("[a-z][a-z0-9_]*", metric.name):
            raise SuperError(f"the metric's name {metric.name!r} should be like `failed_cells`")
        if metric.name in RESERVED:
            raise SuperError(f"a metric cannot be named {metric.name}: another figure has that name")
    refuse_repeated("metrics named", (metric.name for metric in found))
    refuse_repeated("headlines of the set", (name for metric in found for name in metric.headline_of))
    return found


def refuse_repeated(what: str, names: Iterable[str]) -> None:
    name, count = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise SuperError(f"there are {count} {what} {name}")


def score(metrics: Sequence[Metric], task: Task, evidence: Evidence, *, scoring: str = PAPER) -> Scores:
    """The value of each metric, by name, in the order of `metrics`.

    None if the metric does not apply to the task, if its value is not known, and under `reference` if the
    published code fails on the trial. Raises what a metric raises, and SuperError if it returns anything
    but a finite number or None.
    """
    published = published_scores(task, evidence) if scoring == REFERENCE else None

    def value(metric: Metric) -> float | None:
        if published is not None and metric.reference is not None:
            return metric.reference(published)
        return as_number(metric, metric.compute(task, evidence)) if metric.applies(task) else None

    return {metric.name: value(metric) for metric in metrics}


def published_scores(task: Task, evidence: Evidence) -> ReferenceScores:
    # Not at the top, because few sessions score like this.
    from pytest_super.metrics.reference import NO_SCORES, ReferenceScoringError, reference_scores

    # An item of a paper is scored by another published code.
    if task.experiments:
        from pytest_super.metrics.reference_report import reference_report

        report = reference_report(task.experiments, evidence.submission)
        return replace(NO_SCORES, submitted=int(evidence.submitted), self_report=report)
    # The published code has no programs. What a program on the host did in the trial is in the other steps.
    steps = [step for step in evidence.steps if step.action.type not in TOLD]
    try:
        return reference_scores(
            steps,
            answer=task.answer,
            landmarks=task.landmarks,
            entrypoint=task.entrypoint.path if task.entrypoint else None,
        )
    except ReferenceScoringError:
        return NO_SCORES


def as_number(metric: Metric, value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, Real) or not isfinite(value):
        raise SuperError(f"the metric {metric.name} should give a finite number or None, not {value!r}")
    return float(value)


def is_solved(metrics: Iterable[Metric], task: Task, scores: Scores, *, scoring: str = PAPER) -> bool:
    """Whether the task's headline metric has its best value."""
    return any(scores[one.name] == one.best for one in metrics if is_headline(one, task, scoring))


def headline_of(metrics: Iterable[Metric], task: Task, scoring: str) -> str:
    """The name of the metric that decides whether the task is solved; "" if there is none."""
    return next((metric.name for metric in metrics if is_headline(metric, task, scoring)), "")


def is_headline(metric: Metric, task: Task, scoring: str) -> bool:
    """Where a task has a grader, that decides; otherwise the headline metric of the task's set.

    The published scores of papers are made of the agents' own reports.
    """
    if task.experiments and scoring == REFERENCE:
        return metric.name == SELF_REPORT.name
    if task.grade is not None:
        return metric.name == GRADED.name
    return task.set in metric.headline_of


def scored(metrics: Sequence[Metric], task: Task, evidence: Evidence, scoring: str) -> dict[str, Any]:
    """The scores among the fields of a result. `scoring` is one of the SCORINGS. Raises as `score` does."""
    scores = score(metrics, task, evidence, scoring=scoring)
    run = entrypoint_run(task, evidence)
    answer = evidence.submission if scoring == REFERENCE else answer_in(task, evidence.submission)
    return {
        "metrics": scores,
        "landmarks_found": [asdict(landmark) for landmark in evidence.landmarks],
        "entrypoint_process": run and described(run, task),
        "graded": [asdict(value) for value in evidence.graded],
        "solved": is_solved(metrics, task, scores, scoring=scoring),
        "difference": wrong_values(task, replace(evidence, submission=answer)),
        "text_read": answer is not evidence.submission,
    }


def described(run: ProcessRun, task: Task) -> dict[str, Any]:
    assert task.entrypoint is not None
    return {**asdict(run.process), "script": run.script, "min_seconds": task.entrypoint.min_seconds}


def wrong_values(task: Task, evidence: Evidence) -> str:
    if evidence.submitted and task.answer_unknown:
        found = json.dumps(evidence.submission, ensure_ascii=False)
        return f"submitted {found}: if it is right, copy it into `answer`"
    if not evidence.submitted or not task.has_answer:
        return ""
    return difference(task.answer, evidence.submission, task.tolerance)
