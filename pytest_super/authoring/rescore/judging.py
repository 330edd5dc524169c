"""A stored trial as both ways of scoring see it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.output import output_text
from pytest_super.metrics.landmarks import LandmarkMatcher
from pytest_super.sources.store import stored
from pytest_super.store.trajectory import PROGRAM, PROGRAM_BESIDE, Action
from pytest_super.store.user_cache import cache_folder
from pytest_super.trial.score import METRICS, SCORERS, Evidence, Score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.authoring.rescore.trials import Figures, StoredTrial
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Repository, Task


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a trial is scored with, and what each way says."""

    task: Task
    trial: StoredTrial
    reference_steps: list[Step]
    """As the published code had them."""
    landmarks: list[bool]
    """Which the paper's way takes for hit."""
    repository: str | None
    figures: dict[str, Figures]
    """By the way of scoring."""


def applying(task: Task) -> Iterator[str]:
    """The metrics for which the task has what they compare with."""
    known = ("answer" in task.model_fields_set, bool(task.landmarks), task.entrypoint is not None)
    yield from (metric for metric, is_known in zip(METRICS, known, strict=True) if is_known)


def judge(trial: StoredTrial, task: Task) -> Judgement:
    matcher = landmarks_of(trial, task)
    evidence = Evidence(
        steps=trial.steps,
        submission=trial.submission,
        submitted=trial.submit_step is not None,
        landmarks=matcher,
        repository=provided_folder(task.repository),
    )
    steps = list(steps_of_reference(trial))
    paper = SCORERS["paper"](task, evidence)
    reference = SCORERS["reference"](task, replace(evidence, steps=steps))
    hits = [hit or was_hit for hit, was_hit in zip(matcher.hits, hits_of_run(trial, task), strict=True)]
    paper = replace(paper, landmarks=sum(hits) / len(hits) if hits else None)
    return Judgement(
        task=task,
        trial=trial,
        reference_steps=steps,
        landmarks=hits,
        repository=evidence.repository,
        figures={"reference": figures_of(reference, task), "paper": figures_of(paper, task)},
    )


def figures_of(score: Score, task: Task) -> Figures:
    return {metric: getattr(score, metric) for metric in applying(task)}


def differ(one: float | None, other: float | None) -> bool:
    """Whether they are two figures, and not one that was summed up in two orders."""
    if one is None or other is None:
        return one is not other
    return not math.isclose(one, other, abs_tol=1e-9)


def steps_of_reference(trial: StoredTrial) -> Iterator[Step]:
    """The steps as the published code had them when it scored."""
    for step in trial.steps:
        # It did not keep the step in which tokens or time ran out, and knows no programs.
        if step.action.type in ("exception", PROGRAM_BESIDE):
            continue
        if not trial.is_published:
            yield step
        elif step is trial.submit_step:
            text = json.dumps(trial.submission)
            yield replace(step, action=Action(type="submit", content=text), started="", ended="")
        else:
            # The clock times are cut to seconds, so that their difference may be a second too long.
            yield replace(step, started="", ended="")


def landmarks_of(trial: StoredTrial, task: Task) -> LandmarkMatcher:
    """What the stored outputs of the agent's own cells show."""
    matcher = LandmarkMatcher(task.landmarks)
    is_running = False
    for step in (step for step in trial.steps if step.origin == "agent"):
        is_refused = is_running and step.outcome == Outcome.ERROR and not step.seconds
        if step.action.type in ("execute", PROGRAM) and not is_refused:
            matcher.begin_cell(step.action.content, step=step.number)
        elif not (is_running and step.action.type in ("continue_wait", "interrupt")):
            continue
        matcher.feed(step.observation if trial.is_published else "".join(map(output_text, step.outputs)))
        is_running = step.outcome == Outcome.TIMED_OUT
        if not is_running:
            matcher.end_cell()
    matcher.end_cell()
    return matcher


def hits_of_run(trial: StoredTrial, task: Task) -> list[bool]:
    """Which landmarks were seen when the trial ran: outputs are stored with their middle left out."""
    hit = {found["pattern"] for found in trial.landmarks_found if found["step"] is not None}
    return [pattern in hit for pattern in task.landmarks]


def provided_folder(repository: Repository | None) -> str | None:
    """Name of the folder that a trial has the repository in; None where only a fetch would tell it."""
    if repository is None or not repository.provide:
        return None
    if repository.path is not None:
        return PurePosixPath(repository.path).name
    kind, digest = ("git", repository.commit) if repository.git else ("pypi", repository.sha256)
    folder = stored(cache_folder("sources") / kind / str(digest))
    return folder.name if folder else None
