"""Faults planted at known steps of shipped tasks: does `pytest-super why` find them, and what does it cost?

Usage: python benchmarks/lost_steps.py [--small] [--sandbox local]

A scripted model leads `react-super` along the solutions of 12 tasks; at one step, all files and variables are
deleted. In 100 further trials the submission alone is wrong. Fails if fewer than 90 % of the faults are found
at their steps, or if a step is named in a trial without a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from model_server import REACT
from process_tree import ENVIRONMENT

from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import last_results
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Task

PROJECT = Path(__file__).parents[1]
FAULT = "%reset -f\nimport os, shutil\nfor name in os.listdir(): shutil.rmtree(name, ignore_errors=True)"
NULL = REACT.format("submit", "null")
LEAST_FOUND = 0.9
AGENT = "react-super"
# The task of --small.
QUICK = "vader-icwsm2014_data"


def fitting_tasks() -> list[Task]:
    """Those with a prefix: the others lose nothing that gold does not make itself."""
    files = sorted((PROJECT / "tasks").glob("*.task.yaml"))
    tasks = [task for file in files for task in load_tasks(file) if task.solution and task.has_answer]
    return [task for task in tasks if task.set == "masked" and task.pre_execute and not task.grade]


def cells_of(task: Task) -> list[str]:
    assert task.solution is not None
    return read_solution(task.solution, task.folder).cells


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A run of a scripted model, and what is told of its trials."""

    folder: Path
    sandbox: str

    def run(self, cells: dict[str, list[str]], tasks: Iterable[Task], epochs: int = 1) -> None:
        """First gold, as whoever writes a task does."""
        self.folder.mkdir()
        script = {id: [*(REACT.format("execute", cell) for cell in told), NULL] for id, told in cells.items()}
        (self.folder / "script.json").write_text(json.dumps(script))
        items = [f"{task._path}::{task.id}" for task in tasks]
        model = f"--super-model=scripted:{self.folder}/script.json"
        for agent in (["gold"], [AGENT, model, f"--super-epochs={epochs}"]):
            command = [
                *(sys.executable, "-m", "pytest", "-q", "-n2", f"--super-sandbox={self.sandbox}"),
                *(f"--super-dir={self.folder}/super", f"--super-agent={agent[0]}", *agent[1:], *items),
            ]
            subprocess.run(command, cwd=PROJECT, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=False)

    def why(self) -> dict[str, str]:
        """What is told of each trial, by its name."""
        run = (self.folder / "super/runs/latest").resolve()
        start = "from pytest_super.cli import main; raise SystemExit(main())"
        command = [sys.executable, "-c", start, "why", str(run), f"--tasks={PROJECT}/tasks", "-n2"]
        command += [f"--sandbox={self.sandbox}", f"--dir={self.folder}/super"]
        told = subprocess.run(
            command, cwd=PROJECT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False
        )
        return dict(re.findall(r"^(\S+)  (.*)$", told.stdout, re.MULTILINE))

    def results(self, runs: str) -> list[TrialResult]:
        return [result for run in sorted(self.folder.glob(runs)) for result in last_results(run)]

    def cost(self) -> tuple[float, float, float]:
        """How many states were tried for a trial, and their compute time as a multiple of the trials' own.

        In all, and the median of the trials: one that its fault ends at once takes far less than gold.
        """
        trials = [one for one in self.results("super/runs/2*") if one.agent == AGENT]
        tried = self.results("super/why/**/runs/2*")
        own: defaultdict[str, float] = defaultdict(float)
        taken: defaultdict[str, float] = defaultdict(float)
        for seconds, results in ((own, trials), (taken, tried)):
            for one in results:
                seconds[one.id] += one.compute_seconds
        times = [taken[id] / own[id] for id in own]
        return len(tried) / len(trials), sum(taken.values()) / sum(own.values()), statistics.median(times)


def planted(tasks: Iterable[Task]) -> Iterator[tuple[str, int, list[str]]]:
    """The id of each task, the number of the step with the fault, and the cells with it."""
    draw = random.Random(2)
    for task in tasks:
        cells = cells_of(task)
        place = draw.randint(1, len(cells))
        yield task.id, len(task.pre_execute) + place, [*cells[: place - 1], FAULT, *cells[place - 1 :]]


def report(kind: str, experiment: Experiment, told: dict[str, str], began: float) -> None:
    for id, words in told.items():
        print(f"{id}: {words[:110]}")
    seconds = time.monotonic() - began
    states, times, median = experiment.cost()
    cost = f"{times:.1f} times their compute time in all, {median:.1f} in the median"
    print(f"{kind}: {states:.1f} states a trial, {cost}, {seconds:.0f} s\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="one fault, one other trial")
    parser.add_argument("--sandbox", default="local")
    given = parser.parse_args()
    fitting = fitting_tasks()
    quick = [task for task in fitting if task.id == QUICK]
    tasks = quick if given.small else random.Random(1).sample(fitting, 12)
    others = tasks if given.small else fitting
    epochs = 1 if given.small else -(-100 // len(others))
    places = {id: (step, cells) for id, step, cells in planted(tasks)}
    with tempfile.TemporaryDirectory() as name:
        began = time.monotonic()
        lost = Experiment(folder=Path(name) / "lost", sandbox=given.sandbox)
        lost.run({id: cells for id, (_, cells) in places.items()}, tasks)
        told = lost.why()
        report("faults", lost, told, began)
        began = time.monotonic()
        wrong = Experiment(folder=Path(name) / "wrong", sandbox=given.sandbox)
        wrong.run({task.id: cells_of(task) for task in others}, others, epochs)
        fine = wrong.why()
        report("submissions", wrong, fine, began)
    found = sum(words.startswith(f"lost at step {places[id][0]} ") for id, words in told.items())
    claimed = sum(words.startswith("lost") for words in fine.values())
    print(f"{found} of {len(tasks)} faults found at their step")
    print(f"{claimed} claimed in {len(fine)} trials without a fault")
    if found < LEAST_FOUND * len(tasks) or claimed or len(fine) < epochs * len(others):
        sys.exit("the steps are not found")


if __name__ == "__main__":
    main()
