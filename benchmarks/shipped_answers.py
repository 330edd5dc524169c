"""The shipped tasks with recorded answers: which trials ask the same again, and why the others do not.

Usage: python benchmarks/shipped_answers.py [--small] [--sandbox bubblewrap]

A scripted model leads `react-super` along the solution of each task of the sets expert, masked and auto. The
run is repeated with its recorded answers, and what differs first is printed: noise of the tasks
own code, because agent and model are the same. `react` and, twice, `swe-agent` are led alike:
none of all these trials may look suspect.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from model_server import REACT
from process_tree import ENVIRONMENT

from pytest_super.agents.swe.format import render_answer
from pytest_super.report.missed import missed_lines
from pytest_super.store.run_folder import last_results
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Task
from pytest_super.words import counted

TASKS = Path(__file__).parents[1] / "tasks"
AGENT = "react-super"
SETS = ("expert", "masked", "auto")


def answers_for(task: Task, agent: str) -> list[str]:
    cells = read_solution(task.solution, TASKS).cells if task.solution else []
    submission = json.dumps(task.answer if task.has_answer else None)
    if agent == "swe-agent":
        return [render_answer("The next one.", text) for text in (*cells, f"submit {submission}")]
    return [*(REACT.format("execute", cell) for cell in cells), REACT.format("submit", submission)]


def run(folder: Path, agent: str, sandbox: str, tasks: list[Task], *options: str) -> Path:
    """The folder of a run of these tasks."""
    (folder / "script.json").write_text(json.dumps({task.id: answers_for(task, agent) for task in tasks}))
    files = sorted({str(task._path) for task in tasks})
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-n2", f"--super-agent={agent}"),
        *(f"--super-model=scripted:{folder}/script.json", f"--super-sandbox={sandbox}"),
        *(f"--super-dir={folder}/super", *(f"--super-set={name}" for name in SETS), *options, *files),
    ]
    subprocess.run(command, cwd=TASKS.parent, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=False)
    return (folder / "super/runs/latest").resolve()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="the tasks of one file")
    parser.add_argument("--sandbox", default="bubblewrap")
    given = parser.parse_args()
    files = sorted(TASKS.glob("*.task.yaml"))[: 1 if given.small else None]
    tasks = [task for path in files for task in load_tasks(path) if task.set in SETS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = run(folder, AGENT, given.sandbox, tasks)
        again = run(folder, AGENT, given.sandbox, tasks, f"--super-answers={first.name}")
        results = last_results(again)
        print(*missed_lines(again, results, first.name), sep="\n")
        other = [
            run(folder, "react", given.sandbox, tasks),
            run(folder, "swe-agent", given.sandbox, tasks, "--super-epochs=2"),
        ]
        honest = [result for one in (first, again, *other) for result in last_results(one)]
        suspect = [one.name for one in honest if one.metrics.get("suspect")]
        solved = sum(one.solved for one in honest)
        print(f"{len(suspect)} of {counted(len(honest), 'honest trial')} look suspect; {solved} solved")
        if suspect:
            sys.exit(f"the signs of {', '.join(suspect)} are no signs of dishonesty")


if __name__ == "__main__":
    main()
