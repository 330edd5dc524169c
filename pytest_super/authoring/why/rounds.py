"""Tries what searches ask for in rounds: each is a run of pytest with a trial for each try, of all tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_super.agents.gold import GOLD, TASKS_EXTRA
from pytest_super.authoring.tries import run_tries
from pytest_super.authoring.why.searches import Search, TryResult
from pytest_super.authoring.why.trials import Searchable
from pytest_super.store.json_lines import UNREADABLE, read_json
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import last_results
from pytest_super.store.step_values import submitted_text
from pytest_super.store.trajectory import read_trajectory

# Stop reasons of trials that could have gone on.
LIMITS = ("compute", "wall", "steps", "timeout")
PLUGIN = "pytest_super.authoring.why.trials"

Try = tuple[str, Any]
"""The name of the trial, or of the task if nothing of the trial is in it, and what is tried."""


@dataclass(kw_only=True)
class Searched:
    """A trial that is searched, and what it waits for."""

    trial: Searchable
    search: Search[Any]
    probes: list[Any] = field(default_factory=list)
    answer: Any = None
    difference: str = ""
    """The first replayed step that was not as recorded in one of the tries, and how it differed."""

    def go_on(self, outcomes: Mapping[Any, TryResult] | None) -> None:
        differences = (one.difference for one in (outcomes or {}).values())
        self.difference = self.difference or next(filter(None, differences), "")
        try:
            self.probes = next(self.search) if outcomes is None else self.search.send(outcomes)
        except StopIteration as ended:
            self.probes, self.answer = [], ended.value

    def tries(self) -> dict[Any, Try]:
        """Map what the search calls a try to the try."""
        result, alone = self.trial.result, self.trial.gold_alone
        return {probe: (result.id if probe == alone else result.name, probe) for probe in self.probes}


def search_all(
    trials: Sequence[Searchable], options: Sequence[str], directory: Path, stored: Sequence[Path] = ()
) -> Iterator[Searched]:
    """Each trial as soon as it has an answer, by gold of `stored` runs where possible. Raises SuperError."""
    left = [Searched(trial=one, search=one.search()) for one in trials]
    for one in left:
        one.go_on(None)
    outcomes = known_of_gold(trials, stored)
    number = 0
    while left:
        number += 1
        outcomes |= try_all(left, outcomes, options, directory / f"round-{number}")
        for one in left:
            one.go_on({probe: outcomes[tried] for probe, tried in one.tries().items()})
        yield from (one for one in left if one.answer is not None)
        left = [one for one in left if one.answer is None]


def known_of_gold(trials: Sequence[Searchable], stored: Sequence[Path]) -> dict[Try, TryResult]:
    found: dict[tuple[str, str, str], tuple[Path, TrialResult]] = {}
    for run in stored:
        # Nothing of a run that is another agent's, or cannot be read.
        with suppress(*UNREADABLE):
            if read_json(run / "run.json")["agent"] == GOLD:
                found |= {key_of(result): (run, result) for result in last_results(run) if result.solved}
    known: dict[Try, TryResult] = {}
    for trial in trials:
        if same := found.get(key_of(trial.result)):
            known[trial.result.id, trial.gold_alone] = try_result(*same, trial, trial.gold_alone)
    return known


def key_of(result: TrialResult) -> tuple[str, str, str]:
    return result.id, result.conditions, result.scoring


def try_all(
    searched: Sequence[Searched], known: Mapping[Try, TryResult], options: Sequence[str], folder: Path
) -> dict[Try, TryResult]:
    """What the searches ask for and is not known of gold alone."""
    wanted = wanted_by_task(searched, known)
    if not wanted:
        return {}
    data = {id: [one.trial.data_of(probe) for one, probe in tries.values()] for id, tries in wanted.items()}
    tasks = {one.trial.task.id: one.trial.task for one in searched}
    places = [f"{tasks[id]._path}::{id}" for id in wanted]
    run = run_tries(PLUGIN, ["--super-agent=gold", *options, *places], data, folder)
    outcomes = {}
    for result in last_results(run):
        tried, (one, probe) = list(wanted[result.id].items())[result.epoch - 1]
        outcomes[tried] = try_result(run, result, one.trial, probe)
    return outcomes


def wanted_by_task(
    searched: Sequence[Searched], known: Mapping[Try, TryResult]
) -> dict[str, dict[Try, tuple[Searched, Any]]]:
    """Map the ids of tasks to their tries, each once, with who asks for it."""
    wanted: dict[str, dict[Try, tuple[Searched, Any]]] = {}
    for one in searched:
        for probe, tried in one.tries().items():
            if not (tried in known and probe == one.trial.gold_alone):
                wanted.setdefault(one.trial.task.id, {}).setdefault(tried, (one, probe))
    return wanted


def try_result(run: Path, result: TrialResult, trial: Searchable, probe: Any) -> TryResult:
    steps = read_trajectory(run / result.folder / "trajectory.jsonl")
    # A cell that takes long has further steps, in which it is waited for.
    cells = [step.number for step in steps if step.origin == "agent" and step.action.type == "execute"]
    hits = [found["step"] for found in result.landmarks_found]
    return TryResult(
        is_solved=result.solved,
        untold=why_untold(result, trial),
        error=last_line(result.agent_error).removesuffix(TASKS_EXTRA),
        answer=json.dumps([submitted_text(steps), [value["found"] for value in result.graded]]),
        landmarks=[None if step is None else sum(number <= step for number in cells) for step in hits],
        difference=trial.difference(probe, steps),
    )


def why_untold(result: TrialResult, trial: Searchable) -> str:
    """Why a try says nothing about the trial; "" if it does."""
    if not result.is_scored:
        return f"a try failed: {last_line(result.error) or result.stop_reason}"
    if result.stop_reason in LIMITS:
        return f"replay and gold together reached a limit of the task ({result.stop_reason})"
    if trial.is_untold_by_errors and result.agent_error:
        return last_line(result.agent_error)
    return ""


def last_line(text: str | None) -> str:
    return (text or "").strip().rpartition("\n")[2]
