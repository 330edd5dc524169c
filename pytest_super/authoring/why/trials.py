"""The unsolved trials of a run, each with its task: which can be searched, and why others cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.authoring.why.probe import replayable
from pytest_super.errors import SuperError
from pytest_super.session.comparability import has_conditions_of
from pytest_super.store.json_lines import UNREADABLE
from pytest_super.store.run_folder import last_results
from pytest_super.tasks.solution import read_solution

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from pytest_super.store.results import TrialResult
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class LostTrial:
    """A trial that has not solved its task."""

    result: TrialResult
    task: Task
    trajectory: Path
    steps: list[Step]
    """Those of the agent that are replayed."""
    answer: int
    """The index of the cell of gold that gives the answer."""

    @property
    def hit_by(self) -> list[int | None]:
        """For each landmark how many of the steps it takes until it is hit."""
        places = {step.number: place for place, step in enumerate(self.steps, 1)}
        return [places.get(found["step"]) for found in self.result.landmarks_found]


def unsolved_trials(run: Path, names: Collection[str]) -> list[TrialResult]:
    """Of a run, by the names of tasks or trials; of all without names. Raises SuperError."""
    if not (run / "run.json").is_file():
        raise SuperError(f"there is no run in {run}: name a folder with run.json")
    try:
        results = last_results(run)
    except UNREADABLE as error:
        raise SuperError(f"{run}: the run cannot be read: {error}") from None
    known = {name for one in results for name in (one.id, one.name)}
    if unknown := sorted(set(names) - known):
        raise SuperError(f"{run.name} has no trial of {', '.join(unknown)}")
    chosen = [one for one in results if not names or {one.id, one.name} & set(names)]
    return [one for one in chosen if one.is_scored and not one.solved]


def lost_trial(run: Path, result: TrialResult, tasks: Mapping[str, Task]) -> LostTrial:
    """Raises SuperError if gold cannot go on from its states."""
    task = tasks.get(result.id)
    if task is None:
        raise SuperError("its task is not among those of --tasks")
    if task.solution is None or task.experiments:
        raise SuperError("its task has no solution in cells")
    if not has_conditions_of(task, result):
        raise SuperError("its task has changed since")
    trajectory = run / result.folder / "trajectory.jsonl"
    return LostTrial(
        result=result,
        task=task,
        trajectory=trajectory,
        steps=replayable(trajectory),
        answer=read_solution(task.solution, task.folder).answer,
    )
