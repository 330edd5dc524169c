"""Scores a stored trial in both ways."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.output import output_text
from pytest_super.metrics.evidence import Evidence, Landmark
from pytest_super.metrics.landmarks import LandmarkMatcher
from pytest_super.metrics.registry import PAPER, REFERENCE, installed_metrics, score
from pytest_super.sources.store import stored
from pytest_super.store.trajectory import PROGRAM, PROGRAM_BESIDE, Action
from pytest_super.store.user_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.authoring.rescore.trials import Figures, StoredTrial
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Repository, Task


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The figures of a trial in each way, and the facts that they come from."""

    task: Task
    trial: StoredTrial
    reference_steps: list[Step]
    """The steps that the published code would have seen."""
    repository: str | None
    """See `provided_folder`."""
    figures: dict[str, Figures]
    """By scoring, one of SCORINGS."""


def judge(trial: StoredTrial, task: Task) -> Judgement:
    evidence = Evidence(
        steps=trial.steps,
        submission=trial.submission,
        submitted=trial.submit_step is not None,
        landmarks=landmarks_of(trial, task),
        repository=provided_folder(task.repository),
        spent=trial.spent,
    )
    steps = list(steps_of_reference(trial))
    metrics = [metric for metric in installed_metrics() if metric.applies(task)]
    return Judgement(
        task=task,
        trial=trial,
        reference_steps=steps,
        repository=evidence.repository,
        figures={
            REFERENCE: score(metrics, task, replace(evidence, steps=steps), scoring=REFERENCE),
            PAPER: score(metrics, task, evidence),
        },
    )


def steps_of_reference(trial: StoredTrial) -> Iterator[Step]:
    """The steps that the published code had when it scored."""
    for step in trial.steps:
        # It dropped the step in which tokens or time ran out, and it has no steps of programs.
        if step.action.type in ("exception", PROGRAM_BESIDE):
            continue
        if not trial.is_published:
            yield step
        elif step is trial.submit_step:
            text = json.dumps(trial.submission)
            yield replace(step, action=Action(type="submit", content=text), started="", ended="")
        else:
            # Published clock times are cut to seconds, so that their difference can be a second too long.
            yield replace(step, started="", ended="")


def landmarks_of(trial: StoredTrial, task: Task) -> list[Landmark]:
    """How the landmarks match the stored outputs of the agent's own cells, or matched during the trial."""
    matcher = LandmarkMatcher(task.landmarks)
    is_running = False
    for step in (step for step in trial.steps if step.origin == "agent"):
        is_refused = is_running and step.outcome == Outcome.ERROR and not step.seconds
        if step.action.type in ("execute", PROGRAM) and not is_refused:
            matcher.begin_cell(step.action.content, step=step.number)
        elif not (is_running and step.action.type in ("continue_wait", "interrupt")):
            continue
        # Published steps have no outputs.
        matcher.feed(step.observation if trial.is_published else "".join(map(output_text, step.outputs)))
        is_running = step.outcome == Outcome.TIMED_OUT
        if not is_running:
            matcher.end_cell()
    matcher.end_cell()
    # Long outputs are stored without their middle, in which a landmark can have matched.
    matched = {found["pattern"] for found in trial.landmarks_found if found["step"] is not None}
    return [
        replace(found, step=0) if not found.is_hit and found.pattern in matched else found
        for found in matcher.landmarks
    ]


def provided_folder(repository: Repository | None) -> str | None:
    """Name of the folder in which a trial has the repository; None when only a fetch could say."""
    if repository is None or not repository.provide:
        return None
    if repository.path is not None:
        return PurePosixPath(repository.path).name
    kind, digest = ("git", repository.commit) if repository.git else ("pypi", repository.sha256)
    folder = stored(cache_folder("sources") / kind / str(digest))
    return folder.name if folder else None
