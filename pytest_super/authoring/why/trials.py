"""The unsolved trials of a run, each with its task: which can be searched, and why others cannot."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pytest_super.authoring.stored_trials import stored_trials, unchanged_task
from pytest_super.authoring.why.bodies import Kept, search_bodies
from pytest_super.authoring.why.probe import replayable
from pytest_super.authoring.why.search import Search
from pytest_super.authoring.why.steps import ALONE, State, StepSearch
from pytest_super.errors import SuperError
from pytest_super.metrics.registry import installed_metrics
from pytest_super.session.comparability import scoring_of
from pytest_super.session.trial.fork_check import replayed_otherwise
from pytest_super.session.trial.grading import COLLECTED
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Step
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Task


class Searchable(Protocol):
    """A trial that has not solved its task, and what can be tried of it."""

    @property
    def result(self) -> TrialResult: ...

    @property
    def task(self) -> Task: ...

    def search(self) -> Search[Any]: ...

    @property
    def gold_alone(self) -> Any:
        """What is tried with nothing of the trial in it, so that it counts for all trials of the task."""

    def data_of(self, probe: Any) -> dict[str, Any]:
        """What the plugin needs to try it."""

    @property
    def is_untold_by_errors(self) -> bool:
        """Whether a try whose agent raises says nothing: it does not run what the agent wrote."""

    def difference(self, probe: Any, steps: Sequence[Step], /) -> str:
        """The first of the steps of a try that is not as recorded, and how it differs; "" without one."""


@dataclass(frozen=True, kw_only=True)
class LostTrial:
    """A trial of a task with a solution in cells."""

    result: TrialResult
    task: Task
    trajectory: Path
    steps: list[Step]
    """Those of the agent that are replayed."""
    answer: int
    """The index of the cell of gold that gives the answer."""
    is_untold_by_errors = False

    @property
    def hit_by(self) -> list[int | None]:
        """For each landmark how many of the steps it takes until it is hit."""
        places = {step.number: place for place, step in enumerate(self.steps, 1)}
        return [places.get(found["step"]) for found in self.result.landmarks_found]

    def search(self) -> Search[State]:
        return StepSearch(steps=len(self.steps), hit_by=self.hit_by, answer=self.answer).run()

    @property
    def gold_alone(self) -> State:
        return ALONE

    def data_of(self, probe: State) -> dict[str, Any]:
        return {"trajectory": str(self.trajectory.absolute()), **vars(probe)}

    def difference(self, probe: State, steps: Sequence[Step]) -> str:
        recorded = self.steps[: probe.steps]
        replayed = [step for step in steps if step.origin == "agent"][: len(recorded)]
        return replayed_otherwise(recorded, replayed)


@dataclass(frozen=True, kw_only=True)
class LostItem:
    """A trial of an item of a paper."""

    result: TrialResult
    task: PaperItem
    collected: Path
    """The archive of the files that the agent left."""
    is_untold_by_errors = True

    def search(self) -> Search[Kept]:
        return search_bodies([one.target for one in self.task.functions])

    @property
    def gold_alone(self) -> Kept:
        return Kept(())

    def data_of(self, probe: Kept) -> dict[str, Any]:
        return {"collected": str(self.collected.absolute()), **vars(probe)}

    def difference(self, _probe: Kept, _steps: Sequence[Step], /) -> str:
        return ""


def unsolved_trials(run: Path, names: Collection[str]) -> list[TrialResult]:
    """Choose the unsolved trials of a run by name; all without names. Raises SuperError."""
    return [one for one in stored_trials(run, names) if one.is_scored and not one.solved]


def searchable(run: Path, result: TrialResult, tasks: Mapping[str, Task], scoring: str) -> Searchable:
    """`scoring` is that of the run. Raises SuperError if nothing of the trial can be tried."""
    task = unchanged_task(result, tasks)
    if scoring_of(task, installed_metrics(), scoring) != result.scoring:
        raise SuperError("its task has changed since: it is scored otherwise now")
    folder = run / result.folder
    if isinstance(task, PaperItem):
        if not (folder / COLLECTED).is_file():
            raise SuperError("none of its files were collected")
        return LostItem(result=result, task=task, collected=folder / COLLECTED)
    if task.solution is None:
        raise SuperError("its task has no solution")
    return LostTrial(
        result=result,
        task=task,
        trajectory=folder / "trajectory.jsonl",
        steps=replayable(folder / "trajectory.jsonl"),
        answer=read_solution(task.solution, task.folder).answer,
    )
