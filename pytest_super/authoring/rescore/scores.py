"""Stored trials with their published figures, the figures of both ways of scoring, and why they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath

from pytest_super.authoring.rescore.trials import Figures, StoredTrial
from pytest_super.errors import SuperError
from pytest_super.kernel.output import output_text
from pytest_super.metrics.evidence import Evidence, GradedValue, Landmark, Sign, Spent
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.metrics.registry import PAPER, REFERENCE, installed_metrics, score
from pytest_super.metrics.script_runs.process_runs import is_refused
from pytest_super.metrics.script_runs.trial_runs import run_verdicts
from pytest_super.metrics.submitted import SUBMITTED
from pytest_super.sources.git import folder_name
from pytest_super.sources.store import stored
from pytest_super.store.json_lines import UNREADABLE, damage
from pytest_super.store.trajectory import PROGRAM, TOOL_CALL
from pytest_super.store.user_cache import cache_folder
from pytest_super.tasks.task import Repository, Task
from pytest_super.trial.program_steps import source_of_step

CRASH = "the published code raises an error on this trial"
WAYS_DIFFER = {
    "submitted": "the published code treats a submission that is empty, 0, false or null as missing",
    "accuracy": "the published code divides by the number of submitted values, takes a mean at each list and "
    "mapping, has a fixed tolerance of 0.01, and does not read the JSON in a text",
    "landmarks": "the published code searches everything that the agent was shown, the paper's way only the "
    "outputs of the agent's cells",
    "script_executed": "the published code looks for the script's name, the paper's way for a run of it",
}


@dataclass(frozen=True, kw_only=True)
class Rescored:
    """A trial with its figures. A metric with nothing to compare with has only the published one."""

    trial: StoredTrial
    reference: Figures = field(default_factory=dict)
    paper: Figures = field(default_factory=dict)
    scored: tuple[Task, Evidence] | None = None
    """What the figures follow from; None if it has only the published ones."""

    @property
    def name(self) -> str:
        return self.trial.result.name

    def figures(self, metric: str) -> list[float | None]:
        """The published figure, that of the published code, and that of the paper's way."""
        return [figures.get(metric) for figures in (self.trial.result.metrics, self.reference, self.paper)]

    @property
    def differences(self) -> dict[str, list[str]]:
        """The reasons for each metric whose figures differ."""
        found = {metric: list(self.reasons(metric)) for metric in self.paper}
        return {metric: reasons for metric, reasons in found.items() if reasons}

    def reasons(self, metric: str) -> Iterator[str]:
        published, reference, paper = self.figures(metric)
        again = reference if self.trial.scoring == REFERENCE else paper
        if metric in self.trial.result.metrics and differ(published, again):
            yield "the stored figure does not follow from the stored steps and this task"
        if differ(reference, paper):
            # The published code has a number for `submitted` unless it raises.
            is_crash = self.reference[SUBMITTED.name] is None
            yield CRASH if is_crash else WAYS_DIFFER.get(metric, "the two ways compute it differently")
        entrypoint = self.scored[0].entrypoint if self.scored and self.trial.is_published else None
        if entrypoint and metric == "script_executed" and not paper and (published or reference):
            rules = run_verdicts(self.trial.steps, entrypoint, repository=None, files_known=False)
            yield from (f"step {number} {rule}" for rule, number in rules.items())


def differ(one: float | None, other: float | None) -> bool:
    """Whether the figures differ by more than the order of summation can explain."""
    if one is None or other is None:
        return one is not other
    return not math.isclose(one, other, abs_tol=1e-9)


def rescore_all(trials: Sequence[StoredTrial], tasks: Mapping[str, Task]) -> tuple[list[Rescored], list[str]]:
    """The scored trials, and a message for each other one. Raises SuperError when no trial has a task."""
    if trials and not any(trial.result.id in tasks for trial in trials):
        some = ", ".join(sorted({trial.result.id for trial in trials})[:3])
        raise SuperError(f"neither --tasks nor --answers contains any of these tasks: {some}, …")
    rescored, broken = [], []
    for trial in trials:
        try:
            rescored.append(rescore(trial, tasks.get(trial.result.id)))
        except (SuperError, *UNREADABLE) as error:
            broken.append(f"{trial.path} cannot be scored: {damage(error)}")
    return rescored, broken


def rescore(trial: StoredTrial, task: Task | None) -> Rescored:
    """A trial with an infrastructure error, or of an unknown task, keeps only its published figures."""
    if task is None or trial.result.error is not None:
        return Rescored(trial=trial)
    evidence = Evidence(
        steps=trial.steps,
        submission=trial.submission,
        submitted=trial.submit_step is not None,
        landmarks=landmarks_of(trial, task),
        graded=[GradedValue(**value) for value in trial.result.graded],
        signs=None if trial.result.integrity is None else [Sign(**one) for one in trial.result.integrity],
        repository=provided_folder(task.repository),
        files_known=not trial.is_published,
        spent=Spent(**{field.name: getattr(trial.result, field.name) for field in fields(Spent)}),
    )
    metrics = [metric for metric in installed_metrics() if metric.applies(task)]
    reference, paper = (score(metrics, task, evidence, scoring=way) for way in (REFERENCE, PAPER))
    return Rescored(trial=trial, reference=reference, paper=paper, scored=(task, evidence))


def landmarks_of(trial: StoredTrial, task: Task) -> list[Landmark]:
    """How the landmarks match the stored outputs of the agent's own cells, or matched during the trial."""
    matcher = LandmarkMatcher(task.landmarks)
    is_running = False
    for step in (step for step in trial.steps if step.origin == "agent"):
        if step.action.type == TOOL_CALL:
            matcher.search_apart(f"{source_of_step(step)}\n{task.query}", step.observation, step=step.number)
            continue
        if step.action.type in ("execute", PROGRAM) and not (is_running and is_refused(step)):
            is_cell = step.action.type == "execute"
            said = [] if is_cell else [task.query, *map(source_of_step, trial.steps)]
            source = "\n".join([step.action.content, *said])
            matcher.begin_cell(source, step=step.number, counts_echoes=is_cell)
        elif not (is_running and step.action.type in ("continue_wait", "interrupt")):
            continue
        # Published steps have no outputs.
        matcher.feed(step.observation if trial.is_published else "".join(map(output_text, step.outputs)))
        is_running = step.is_running
        if not is_running:
            matcher.end_cell()
    matcher.end_cell()
    # Long outputs are stored without their middle, in which a landmark can have matched.
    hits = {one["pattern"]: one for one in trial.result.landmarks_found if one["step"] is not None}
    return [
        Landmark(**hits[found.pattern]) if not found.is_hit and found.pattern in hits else found
        for found in matcher.landmarks
    ]


def provided_folder(repository: Repository | None) -> str | None:
    """Name of the folder in which a trial has the repository; None when only a fetch could say."""
    if repository is None or not repository.provide:
        return None
    if repository.path is not None:
        return PurePosixPath(repository.path).name
    if repository.git is not None:
        return folder_name(repository.git)
    folder = stored(cache_folder("sources") / "pypi" / str(repository.sha256))
    return folder.name if folder else None
