"""Tries states in rounds: each round is a run of pytest with a trial for each state, of all tasks at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_super.agents.gold import TASKS_EXTRA
from pytest_super.authoring.why.probe import VARIABLE
from pytest_super.authoring.why.search import Outcome, search
from pytest_super.errors import SuperError
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors
from pytest_super.store.run_folder import last_results
from pytest_super.store.trajectory import read_trajectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_super.authoring.why.search import Answer, Probe, Search
    from pytest_super.authoring.why.trials import LostTrial
    from pytest_super.store.results import TrialResult

PLUGINS = ("pytest_super.session.end_with_parent", "pytest_super.authoring.why.probe")
# Exit statuses of pytest when all tests were run, whether or not they passed.
DONE = (0, 1)


@dataclass(kw_only=True)
class Searched:
    """A trial that is searched, and what it waits for."""

    trial: LostTrial
    search: Search
    probes: list[Probe] = field(default_factory=list)
    answer: Answer | None = None

    def go_on(self, outcomes: Mapping[Probe, Outcome] | None) -> None:
        try:
            self.probes = next(self.search) if outcomes is None else self.search.send(outcomes)
        except StopIteration as ended:
            self.probes, self.answer = [], ended.value


def search_all(trials: Sequence[LostTrial], options: Sequence[str], directory: Path) -> Iterator[Searched]:
    """Each trial as soon as it has an answer. Raises SuperError if states cannot be tried."""
    left = [Searched(trial=one, search=search(len(one.steps), one.hit_by, one.answer)) for one in trials]
    for one in left:
        one.go_on(None)
    number = 0
    while left:
        number += 1
        outcomes = try_states(left, options, directory / f"round-{number}")
        for one in left:
            one.go_on({probe: outcomes[one.trial.result.name, probe] for probe in one.probes})
        yield from (one for one in left if one.answer is not None)
        left = [one for one in left if one.answer is None]


def try_states(
    searched: Sequence[Searched], options: Sequence[str], folder: Path
) -> dict[tuple[str, Probe], Outcome]:
    """The outcomes by the trial's name and the probe."""
    wanted: dict[str, list[tuple[LostTrial, Probe]]] = {}
    for one in searched:
        wanted.setdefault(one.trial.task.id, []).extend((one.trial, probe) for probe in one.probes)
    # Of other epochs, too: the agent skips them.
    items = [f"{probes[0][0].task._path}::{id}" for id, probes in wanted.items()]
    most = max(map(len, wanted.values()))
    run = run_pytest([f"--super-epochs={most}", *options, *items], data_of(wanted), folder)
    found = {}
    for result in last_results(run):
        trial, probe = wanted[result.id][result.epoch - 1]
        found[trial.result.name, probe] = outcome_of(run, result)
    return found


def data_of(wanted: Mapping[str, Sequence[tuple[LostTrial, Probe]]]) -> dict[str, list[dict[str, object]]]:
    return {
        id: [{"trajectory": str(trial.trajectory.absolute()), **vars(probe)} for trial, probe in probes]
        for id, probes in wanted.items()
    }


def run_pytest(arguments: Sequence[str], data: Mapping[str, object], folder: Path) -> Path:
    """The folder of the run. Raises SuperError if not all states were tried."""
    folder.mkdir(parents=True, exist_ok=True)
    probes, log = folder / "probes.json", folder / "pytest.log"
    with disk_errors(folder):
        write_atomically(probes, json.dumps(data))
    plugins = [f"-p{plugin}" for plugin in PLUGINS]
    own = ["--super-agent=gold", f"--super-dir={folder.absolute()}"]
    command = [sys.executable, "-m", "pytest", *plugins, *own, *arguments]
    with log.open("wb") as output:
        status = subprocess.run(
            command,
            env={**os.environ, VARIABLE: str(probes.absolute())},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if status not in DONE:
        raise SuperError(f"pytest ended with status {status} before all states were tried: see {log}")
    return (folder / "runs/latest").resolve()


def outcome_of(run: Path, result: TrialResult) -> Outcome:
    steps = read_trajectory(run / result.folder / "trajectory.jsonl")
    before = sum(step.origin == "pre_execute" for step in steps)
    hits = [found["step"] for found in result.landmarks_found]
    error = result.error or result.agent_error or ""
    return Outcome(
        is_solved=result.solved,
        error=error.removesuffix(TASKS_EXTRA),
        landmarks=[None if step is None else step - before for step in hits],
    )
