"""Problems in the trials of a task's own solution: it fails, or its values differ between epochs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_super.authoring.verify.finding import Finding, finding
from pytest_super.authoring.verify.gold_run import GoldTrial
from pytest_super.metrics.accuracy import ACCURACY, answer_in, is_right, judged
from pytest_super.metrics.leaves import MISSING, Place, is_number, leaves, shown, value_at
from pytest_super.metrics.registry import installed_metrics
from pytest_super.report.failure_line import failure_line_with_error, wrong_lines
from pytest_super.tasks.grade import EVERYTHING, Check, Grade
from pytest_super.tasks.task import Task
from pytest_super.words import counted, printable_line

JUDGES = (
    "{program} runs the agent's code and judges it in one process, where that code can change what judges: "
    "let it write values that `expected` states, or compute them in `then`"
)
# Threads that add up floats in any order make relative differences up to NOISE. Around zero a relative
# difference means nothing.
NOISE, NOISE_AT_ZERO = 1e-12, 1e-15


def failures(task: Task, trials: Sequence[GoldTrial]) -> Iterator[Finding]:
    """A finding for each trial that is an error, or in which a metric that applies is not its best value."""
    best = {metric.name: metric.best for metric in installed_metrics() if metric.best is not None}
    for trial in trials:
        result = trial.result
        low = {name: result.metrics.get(name) for name in best}
        low = {name: value for name, value in low.items() if value is not None and value != best[name]}
        facts = {"epoch": result.epoch, "metrics": low}
        if result.is_error:
            text = f"{result.name}: error: {result.error} ({result.folder})"
            yield Finding(kind="fails", task=task.id, text=text, facts={**facts, "error": result.error})
        elif low or not result.submitted:
            place = f"{result.folder}/trajectory.jsonl"
            missed = [one["pattern"] for one in result.landmarks_found if one["step"] is None]
            why = "; ".join(
                [
                    *(failure_line_with_error(result), place, *wrong_values(task, trial)),
                    *wrong_lines(result.graded),
                    *(f"no output matches the landmark {pattern!r}" for pattern in missed),
                ]
            )
            yield Finding(
                kind="fails", task=task.id, text=printable_line(f"{result.name}: {why}"), facts=facts
            )


def weak_graders(task: Task, trials: Sequence[GoldTrial]) -> Iterator[Finding]:
    """What the task's grader can be passed by, without the work."""
    if any(trial.exits_pass for trial in trials):
        yield finding(
            "weak", task.id, "its grader passes if each collected Python file only has `os._exit(0)`"
        )
    elif task.grade and not task.grade.then and not any(map(is_compared, task.grade.checks)):
        programs = {trial.program for trial in trials if trial.program}
        for program in sorted(one for one in programs if not is_collected(task.grade, one)):
            yield finding("weak", task.id, JUDGES.format(program=program))


def is_compared(check: Check) -> bool:
    """Whether the host compares what the command yields, not only what the command says of itself."""
    says_more = check.has_expected and not all(isinstance(one, bool) for _, one in leaves(check.expected))
    return check.has_value and (says_more or check.interval is not None)


def is_collected(grade: Grade, program: str) -> bool:
    paths = [grade.collect] if isinstance(grade.collect, str) else grade.collect or []
    return any(path == EVERYTHING or f"/{path}/" in f"/{program}/" for path in paths)


def wrong_values(task: Task, trial: GoldTrial) -> Iterator[str]:
    if task.has_answer and trial.result.submitted:
        for leaf in judged(task.answer, answer_in(task, trial.submission), task.tolerance):
            if not leaf.is_right:
                yield f"{shown(leaf.place)} is {written(leaf.given)}, not {written(leaf.wanted)}"


def variations(task: Task, trials: Sequence[GoldTrial]) -> Iterator[Finding]:
    """A finding for each value of the answer, and each other metric, that differs between valid trials."""
    valid = [trial for trial in trials if not trial.result.is_error]
    answers = [answer_in(task, trial.submission) for trial in valid if trial.result.submitted]
    for place, gold in compared(task, answers).items():
        values = [value_at(answer, place) for answer in answers]
        if are_different(values):
            is_within = all(is_right(gold, value, task.tolerance) for value in values)
            yield variation(task, shown(place), values, gold, is_within)
    # The values of the answer say more than the accuracy does.
    judged = [one for one in installed_metrics() if one.best is not None and one.name != ACCURACY.name]
    for metric in judged:
        figures = [trial.result.metrics.get(metric.name) for trial in valid]
        if are_different(figures):
            yield variation(task, metric.name, figures, metric.best, False)


def compared(task: Task, answers: Sequence[Any]) -> dict[Place, Any]:
    """The values of the gold answer, or of the first submitted answer when the task has no gold answer."""
    if task.has_answer:
        return dict(leaves(task.answer))
    return dict(leaves(answers[0])) if answers else {}


def variation(task: Task, name: str, values: list[Any], gold: Any, is_within: bool) -> Finding:
    where = "within" if is_within else "beyond"
    text = f"{name} is {spread(values)} over {counted(len(values), 'epoch')}, {where} the tolerance"
    facts = {
        "value": name,
        "values": [None if value is MISSING else value for value in values],
        "gold": gold,
        "tolerance": task.tolerance,
        "within_tolerance": is_within,
    }
    return finding("flaky", task.id, f"{text} {task.tolerance:g}", facts)


def spread(values: Sequence[Any]) -> str:
    """The smallest and the largest of numbers; each different value when some are not numbers."""
    if all(is_number(value) for value in values):
        return f"{min(values):.12g}..{max(values):.12g}"
    return " or ".join(dict.fromkeys(written(value) for value in values))


def are_different(values: Sequence[Any]) -> bool:
    if all(is_number(value) for value in values):
        least, greatest = min(values, default=0), max(values, default=0)
        return not math.isclose(least, greatest, rel_tol=NOISE, abs_tol=NOISE_AT_ZERO)
    # By `repr`, because True equals 1.
    return len({repr(value) for value in values}) > 1


def written(value: Any) -> str:
    return "missing" if value is MISSING else json.dumps(value, ensure_ascii=False)
