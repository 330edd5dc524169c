"""The unsolved trials that can be searched, and the plugin whose agents repeat them until gold goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import pytest

from pytest_super.agents.gold import GoldAgent, first_failure, run_to_end
from pytest_super.agents.gold_functions import writing
from pytest_super.agents.registry import AgentSettings, make_gold
from pytest_super.agents.replay import ReplayAgent, read_steps
from pytest_super.authoring.stored_trials import unchanged_task
from pytest_super.authoring.tries import try_of
from pytest_super.authoring.why.searches import ALONE, Kept, Search, State, StepSearch, search_bodies
from pytest_super.errors import SuperError
from pytest_super.grading.masked_code import prepared_code
from pytest_super.metrics.registry import installed_metrics
from pytest_super.session.comparability import scoring_of
from pytest_super.session.trial.fork_check import replayed_otherwise
from pytest_super.session.trial.grading import COLLECTED
from pytest_super.store.results import TrialResult
from pytest_super.store.trajectory import Step
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Task
from pytest_super.trial.agent_run import Agent
from pytest_super.trial.trial import Trial


@dataclass(frozen=True, kw_only=True)
class LostTrial:
    """A trial of a task with a solution in cells, and what can be tried of it."""

    result: TrialResult
    task: Task
    trajectory: Path
    steps: list[Step]
    """Those of the agent that are replayed."""
    answer: int
    """The index of the cell of gold that gives the answer."""
    gold_alone = ALONE
    """What is tried with nothing of the trial in it, so that it counts for all trials of the task."""
    is_untold_by_errors = False
    """Whether a try whose agent raises says nothing: it does not run what the agent wrote."""

    def search(self) -> Search[State]:
        places = {step.number: place for place, step in enumerate(self.steps, 1)}
        hit_by = [places.get(found["step"]) for found in self.result.landmarks_found]
        return StepSearch(steps=len(self.steps), hit_by=hit_by, answer=self.answer).run()

    def data_of(self, probe: State) -> dict[str, Any]:
        """What the plugin needs to try it."""
        return {"trajectory": str(self.trajectory.absolute()), **vars(probe)}

    def difference(self, probe: State, steps: Sequence[Step]) -> str:
        """The first of the steps of a try that is not as recorded, and how it differs; "" without one."""
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
    gold_alone = Kept(())
    is_untold_by_errors = True

    def search(self) -> Search[Kept]:
        return search_bodies([one.target for one in self.task.functions])

    def data_of(self, probe: Kept) -> dict[str, Any]:
        return {"collected": str(self.collected.absolute()), **vars(probe)}

    def difference(self, _probe: Kept, _steps: Sequence[Step]) -> str:
        return ""


Searchable: TypeAlias = LostTrial | LostItem


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


def replayable(trajectory: Path) -> list[Step]:
    """The steps that are replayed, without submissions. Raises SuperError for one that cannot be."""
    return [step for step in ReplayAgent(read_steps(trajectory)).steps if step.action.type != "submit"]


class StateAgent:
    """Repeats some steps, then gold goes on."""

    def __init__(self, steps: Sequence[Step], gold: GoldAgent) -> None:
        self.replaying = ReplayAgent(steps)
        self.gold = gold

    def run(self, trial: Trial) -> None:
        self.replaying.run(trial)
        if trial.kernel.is_running:
            trial.interrupt()
        self.gold.run(trial)


class BodiesAgent:
    """Writes the original files with some of the bodies that were collected."""

    def __init__(self, task: PaperItem, collected: Path, bodies: Sequence[str]) -> None:
        self.task = task
        self.collected = collected
        self.bodies = bodies

    def run(self, trial: Trial) -> None:
        code = prepared_code(self.task)
        assert code is not None
        files = code.with_bodies(self.collected, self.bodies)
        steps = [run_to_end(trial, writing(PurePosixPath(path), data)) for path, data in files.items()]
        if why := first_failure(steps):
            raise SuperError(why)
        trial.submit(None)


def pytest_super_make_agent(task: Task, epoch: int) -> Agent:
    if (probe := try_of(task.id, epoch)) is None:
        pytest.skip("less is tried of this task")
    if isinstance(task, PaperItem):
        return BodiesAgent(task, Path(probe["collected"]), probe["bodies"])
    gold = make_gold(task, AgentSettings())
    assert isinstance(gold, GoldAgent)
    steps = replayable(Path(probe["trajectory"]))[: probe["steps"]]
    gold.first = probe["cell"]
    return StateAgent(steps, gold)
