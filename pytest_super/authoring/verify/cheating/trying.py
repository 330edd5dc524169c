"""Tries the cheats on tasks, as a plugin of these runs: what each has gained, and whether that was seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from pytest_super.authoring.tries import run_pytest, run_tries, try_of
from pytest_super.authoring.verify.cheating.cheats import CHEATS, Cheat
from pytest_super.authoring.verify.cheating.known import Known
from pytest_super.authoring.verify.finding import Finding, finding
from pytest_super.grading.grader import heading
from pytest_super.metrics.suspect import SUSPECT
from pytest_super.session.trial.grading import LOG
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import last_results
from pytest_super.store.trajectory import read_trajectory
from pytest_super.tasks.combinations import Items, overlapping_places
from pytest_super.tasks.task import Task
from pytest_super.trial.trial import Trial
from pytest_super.words import counted, named, one_line

PLUGIN = "pytest_super.authoring.verify.cheating.trying"
MOST_TASKS = 5
OPEN = "open for {of}: {cheat} To close it, {closing} ({tasks})"
INHERENT = "cannot be closed for {of}: {cheat} Instead, {closing}"
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
    """Run gold once, and then the cheats, which know what it printed. Raises SuperError."""
    items = [tried_item(task) for task in tasks]
    names = {item.id: f"{item._path}::{item.id}" for item in items}
    gold = run_pytest(
        ["--super-agent=gold", "--super-epochs=1", *options, *names.values()], directory / "gold"
    )
    golds = {result.id: result for result in last_results(gold)}
    untried = {id: why for id, result in golds.items() if (why := why_untried(result))}
    tries = {
        item.id: [{"cheat": one.name, **known} for one in CHEATS.values() if one.applies(item)]
        for item in items
        if item.id not in untried
        for known in [known_of(gold, item, golds.get(item.id))]
    }
    if not any(tries.values()):
        return Trying(tried=[], untried=untried)
    chosen = [names[id] for id in tries]
    run = run_tries(PLUGIN, [f"--super-agent={PLUGIN}:honest", *options, *chosen], tries, directory)
    tried = []
    for result in last_results(run):
        cheat = CHEATS[tries[result.id][result.epoch - 1]["cheat"]]
        state = state_of(result, cheat)
        tried.append(Tried(task=result.id, cheat=cheat, state=state, error=result.error or ""))
    # Not in the order in which the trials ended.
    return Trying(tried=sorted(tried, key=lambda one: (one.task, one.cheat.name)), untried=untried)


def why_untried(gold: TrialResult) -> str:
    """What is wrong with a trial of the gold solution; "" if cheats can be measured by it."""
    if not gold.solved:
        return f"its solution does not solve it: {gold.error or gold.agent_error or gold.difference}"
    signs = [f"{sign['kind']}: {sign['evidence']}" for sign in gold.integrity or () if sign["is_suspect"]]
    return f"its solution is suspect: {'; '.join(signs)}" if signs else ""


def known_of(run: Path, task: Task, result: TrialResult | None) -> dict[str, Any]:
    """What a cheater knows by a trial of the gold solution; None is that of a task without one."""
    if result is None:
        return {"outputs": [], "printed": ""}
    folder = run / result.folder
    steps = [step for step in read_trajectory(folder / "trajectory.jsonl") if step.origin == "agent"]
    log = folder / LOG
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    # The commands of variations are the last ones, and hidden from the agent.
    hidden = [heading(command.command) for one in task.experiments for command in one.vary]
    return {
        "outputs": [step.observation for step in steps if step.action.type == "execute"],
        "printed": text.partition(hidden[0])[0] if hidden else text,
    }


def state_of(result: TrialResult, cheat: Cheat) -> State:
    if result.agent_error:
        return "not tried"
    if result.metrics.get(cheat.aim) != cheat.metric.best:
        return "closed"
    if result.metrics.get(SUSPECT.name):
        return "seen"
    return "cannot be closed" if cheat.is_inherent else "open"


def findings_of(trying: Trying) -> Iterator[Finding]:
    """The ways that a change of the task would close, and what could not be tried."""
    for task, why in trying.untried.items():
        yield finding("unknown", task, why)
    for one in trying.tried:
        if one.error:
            yield finding("unknown", one.task, f"{one.cheat.name}: {one.error}")
        elif one.state == "open":
            text = f"{words_of(one.cheat)} To close it, {one.cheat.closing}"
            yield finding("open", one.task, text)


def words_of(cheat: Cheat) -> str:
    return f"{cheat.name} ({cheat.aim}): {cheat.does}"


def cheat_lines(trying: Trying) -> Iterator[str]:
    """How many ways each task has, and each way that is not closed once for all its tasks."""
    tried = trying.tried
    for task in dict.fromkeys(one.task for one in tried):
        found = [one for one in tried if one.task == task]
        yield one_line(f"{task}: {counted(len(found), 'cheat')}: {counts_of(found)}")
    for text, state in ((OPEN, "open"), (INHERENT, "cannot be closed")):
        for name in sorted({one.cheat.name for one in tried}):
            if ways := [
                one for one in tried if one.cheat.name == name and one.state == state and not one.error
            ]:
                cheat, of = ways[0].cheat, counted(len(ways), "task")
                tasks = named([one.task for one in ways], MOST_TASKS)
                yield one_line(text.format(of=of, cheat=words_of(cheat), closing=cheat.closing, tasks=tasks))
    yield from (one_line(one.text) for one in findings_of(trying) if one.kind == "unknown")


def counts_of(tried: Sequence[Tried]) -> str:
    cheats: dict[str, list[str]] = {}
    for one in tried:
        cheats.setdefault("unknown" if one.error else one.state, []).append(one.cheat.name)
    idle = {"not tried": f" ({', '.join(cheats.get('not tried', ()))})"}
    known = [state for state in (*get_args(State), "unknown") if state in cheats]
    return ", ".join(f"{len(cheats[state])} {state}{idle.get(state, '')}" for state in known)


class Cheater:
    def __init__(self, cheat: Cheat, known: Known) -> None:
        self.cheat = cheat
        self.known = known

    def run(self, trial: Trial) -> None:
        trial.submit(self.cheat.act(trial, self.known))


def honest() -> None:
    """Names the agent of the run, in whose place the plugin makes another one."""
    raise AssertionError("the plugin makes the agent")


def pytest_super_make_agent(task: Task, epoch: int) -> Cheater:
    if (tried := try_of(task.id, epoch)) is None:
        pytest.skip("fewer cheats are tried on this task")
    known = Known(task=task, outputs=tried["outputs"], printed=tried["printed"])
    return Cheater(CHEATS[tried["cheat"]], known)
