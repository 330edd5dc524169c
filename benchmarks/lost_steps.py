"""Faults planted at known steps of the shipped tasks: does `pytest-super why` find them, and what does it cost?

Usage: python benchmarks/lost_steps.py [--small] [--sandbox local]

A scripted model leads `react-super` along the solution of each task. In one trial of each, one step deletes all
files and variables, and the last one submits null; in the others, nothing but the submission is wrong. Fails if
fewer than 90 % of the faults that gold cannot repair are found at their steps, or if a step is named in a trial
without a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from model_server import REACT
from process_tree import ENVIRONMENT

from pytest_super.store.run_folder import last_results
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Task

TASKS = Path(__file__).parents[1] / "tasks"
FAULT = "%reset -f\nimport os, shutil\nfor name in os.listdir(): shutil.rmtree(name, ignore_errors=True)"
LEAST_FOUND = 0.9


def chosen_tasks(number: int) -> list[Task]:
    """Those with a prefix or a repository: the others lose nothing that gold does not make itself."""
    files = sorted(TASKS.glob("*.task.yaml"))
    tasks = [task for file in files for task in load_tasks(file) if task.solution and task.has_answer]
    fitting = [task for task in tasks if task.set == "masked" and task.pre_execute and not task.grade]
    return random.Random(1).sample(fitting, number)


def run(folder: Path, sandbox: str, script: dict[str, list[str]], tasks: list[Task]) -> Path:
    folder.mkdir()
    (folder / "script.json").write_text(json.dumps(script))
    items = [f"{task._path}::{task.id}" for task in tasks]
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n2", "--super-agent=react-super"),
        *(f"--super-model=scripted:{folder}/script.json", f"--super-sandbox={sandbox}"),
        *(f"--super-dir={folder}/super", *items),
    ]
    subprocess.run(command, cwd=TASKS.parent, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=False)
    return (folder / "super/runs/latest").resolve()


def why(run: Path, sandbox: str, folder: Path) -> dict[str, str]:
    """What is told of each trial."""
    command = [sys.executable, "-c", "from pytest_super.cli import main; raise SystemExit(main())", "why", str(run), f"--tasks={TASKS}", "-n2"]
    command += [f"--sandbox={sandbox}", f"--dir={folder}/why"]
    told = subprocess.run(
        command, cwd=TASKS.parent, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False
    )
    return dict(re.findall(r"^(\S+)  (.*)$", told.stdout, re.MULTILINE))


def compute_of(runs: list[Path]) -> float:
    return sum(result.compute_seconds for run in runs for result in last_results(run))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="two tasks")
    parser.add_argument("--sandbox", default="local")
    given = parser.parse_args()
    tasks = chosen_tasks(2 if given.small else 12)
    draw = random.Random(2)
    planted = {}
    spoilt, wrong = {}, {}
    null = REACT.format("submit", "null")
    for task in tasks:
        assert task.solution is not None
        cells = read_solution(task.solution, task.folder).cells
        place = draw.randint(1, len(cells))
        planted[task.id] = len(task.pre_execute) + place
        steps = [*cells[: place - 1], FAULT, *cells[place - 1 :]]
        spoilt[task.id] = [*(REACT.format("execute", cell) for cell in steps), null]
        wrong[task.id] = [*(REACT.format("execute", cell) for cell in cells), null]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        lost = run(folder / "a", given.sandbox, spoilt, tasks)
        told = why(lost, given.sandbox, folder / "a")
        seconds = time.monotonic() - began
        cost = compute_of(list((folder / "a/why").glob("*/*/runs/2*"))) / compute_of([lost])
        fine = why(run(folder / "b", given.sandbox, wrong, tasks), given.sandbox, folder / "b")
    for id, words in told.items():
        print(f"{id} (step {planted[id]}): {words[:150]}")
    for id, words in fine.items():
        print(f"{id} (no fault): {words[:150]}")
    found = sum(words.startswith(f"lost at step {planted[id]} ") for id, words in told.items())
    claimed = sum(words.startswith("lost") for words in fine.values())
    print(
        f"{found} of {len(tasks)} faults found at their step, {claimed} of {len(fine)} claimed without a fault"
    )
    print(f"{cost:.1f} times the trials' own compute time, {seconds:.0f} s")
    if found < LEAST_FOUND * len(tasks) or claimed or len(fine) < len(tasks):
        sys.exit("the steps are not found")


if __name__ == "__main__":
    main()
