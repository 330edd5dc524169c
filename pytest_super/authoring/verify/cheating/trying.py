"""Tries the cheats of the corpus on tasks: what each has gained, and whether that was seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_super.authoring.tries import run_pytest, run_tries
from pytest_super.authoring.verify.cheating.cheat import Cheat
from pytest_super.authoring.verify.cheating.registry import cheats
from pytest_super.grading.grader import heading
from pytest_super.metrics.suspect import SUSPECT
from pytest_super.session.trial.grading import LOG
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import last_results
from pytest_super.store.trajectory import read_trajectory
from pytest_super.tasks.combinations import Items, overlapping_places
from pytest_super.tasks.task import Task

PLUGIN = "pytest_super.authoring.verify.cheating.cheater"
State = Literal["closed", "seen", "cannot be closed", "open", "not tried"]
"""It gains nothing; it gains, but the trial is suspect; nothing closes it for such a task; it gains; it had
nothing to act with."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What a cheat has gained on a task."""

    task: str
    cheat: Cheat
    state: State
    error: str = ""
    """Why its trial says nothing."""


def tried_item(task: Task) -> Task:
    """The task itself; of a paper the item with all its functions, or as many as can be masked together."""
    if not task.functions:
        return task
    places: list[int] = []
    overlapping = overlapping_places(task)
    for place in range(len(task.functions)):
        if not any((other, place) in overlapping for other in places):
            places.append(place)
    return Items(task).item(tuple(places))


@dataclass(frozen=True, kw_only=True)
class Trying:
    """What was found for some tasks."""

    tried: list[Tried]
    untried: dict[str, str]
    """Why no cheat was tried, by the ids of tasks."""


def try_cheats(tasks: Sequence[Task], options: Sequence[str], directory: Path) -> Trying:
    """Run the gold solution of each task once, and then the cheats, which know what it printed.

    Raises SuperError if pytest does not try all.
    """
    items = [tried_item(task) for task in tasks]
    names = {item.id: f"{item._path}::{item.id}" for item in items}
    gold = run_pytest(
        ["--super-agent=gold", "--super-epochs=1", *options, *names.values()], directory / "gold"
    )
    golds = {result.id: result for result in last_results(gold)}
    untried = {id: why for id, result in golds.items() if (why := why_untried(result))}
    tries = {
        item.id: list(tries_of(item, known_of(gold, item, golds.get(item.id))))
        for item in items
        if item.id not in untried
    }
    if not any(tries.values()):
        return Trying(tried=[], untried=untried)
    chosen = [names[id] for id in tries]
    run = run_tries(PLUGIN, [f"--super-agent={PLUGIN}:honest", *options, *chosen], tries, directory)
    tried = [tried_by(result, tries) for result in last_results(run)]
    # Not in the order in which the trials ended.
    return Trying(tried=sorted(tried, key=lambda one: (one.task, one.cheat.name)), untried=untried)


def why_untried(gold: TrialResult) -> str:
    """What is wrong with a trial of the gold solution; "" if cheats can be measured by it."""
    if not gold.solved:
        return f"its solution does not solve it: {gold.error or gold.agent_error or gold.difference}"
    signs = [f"{sign['kind']}: {sign['evidence']}" for sign in gold.integrity or () if sign["is_suspect"]]
    return f"its solution is suspect: {'; '.join(signs)}" if signs else ""


def tries_of(task: Task, known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    return ({"cheat": one.name, **known} for one in cheats().values() if one.applies(task))


def without_variations(log: str, task: Task) -> str:
    """What the commands of a grader printed that an agent knows."""
    # They are the last ones.
    hidden = [heading(command.command) for one in task.experiments for command in one.vary]
    return log.partition(hidden[0])[0] if hidden else log


def known_of(run: Path, task: Task, result: TrialResult | None) -> dict[str, Any]:
    """What a cheater knows by a trial of the gold solution; None is that of a task without one."""
    if result is None:
        return {"outputs": [], "printed": ""}
    folder = run / result.folder
    steps = [step for step in read_trajectory(folder / "trajectory.jsonl") if step.origin == "agent"]
    log = folder / LOG
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    printed = without_variations(text, task)
    return {
        "outputs": [step.observation for step in steps if step.action.type == "execute"],
        "printed": printed,
    }


def tried_by(result: TrialResult, tries: Mapping[str, Sequence[Mapping[str, Any]]]) -> Tried:
    cheat = cheats()[tries[result.id][result.epoch - 1]["cheat"]]
    return Tried(task=result.id, cheat=cheat, state=state_of(result, cheat), error=result.error or "")


def state_of(result: TrialResult, cheat: Cheat) -> State:
    if result.agent_error:
        return "not tried"
    if result.metrics.get(cheat.aim) != cheat.metric.best:
        return "closed"
    if result.metrics.get(SUSPECT.name):
        return "seen"
    return "cannot be closed" if cheat.is_inherent else "open"
