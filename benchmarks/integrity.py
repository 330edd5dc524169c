"""What it costs to look for signs of dishonesty: trials with it, over the same ones without.

Usage: python benchmarks/integrity.py [--small] [--sandbox local|docker] [--trials 5]

The solution of a masked task runs in a fresh sandbox, as in a trial: the files that each cell changed are
looked for after it, and those that decide later commands after the last one.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

from rows import print_row

from pytest_super.commands.sandboxes import kernel_starter
from pytest_super.integrity.deciding import deciding_files
from pytest_super.integrity.look import Traces
from pytest_super.integrity.registry import signs_of
from pytest_super.metrics.evidence import Evidence
from pytest_super.session.trial.grading import after_prefix
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.solution import read_solution

TASKS = Path(__file__).parents[1] / "tasks/pygam.task.yaml"


def trial(sandbox: str) -> tuple[float, float]:
    """The seconds of a whole trial, and those in which signs were looked for."""
    began = perf_counter()
    task = next(task for task in load_tasks(TASKS) if task.pre_execute)
    assert task.solution is not None
    start = kernel_starter(argparse.Namespace(sandbox=sandbox, image=None, pip_config=None), "benchmark")
    with after_prefix(start(task)) as kernel:
        looked = -perf_counter()
        since = kernel.files.now()
        kernel.files.changes(kernel.workdir)
        for cell in read_solution(task.solution, task.folder).cells:
            looked += perf_counter()
            kernel.execute(cell)
            looked -= perf_counter()
            kernel.files.changes(kernel.workdir)
        files = deciding_files(kernel, since)
        assert files is not None
        signs_of(Traces(task=task, evidence=Evidence(steps=()), files=files))
        looked += perf_counter()
    return perf_counter() - began, looked


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="one trial")
    parser.add_argument("--sandbox", choices=["local", "docker"], default="local")
    parser.add_argument("--trials", type=int, default=5)
    given = parser.parse_args()
    found = [trial(given.sandbox) for _ in range(1 if given.small else given.trials)]
    whole, looked = (sum(times) / len(found) for times in zip(*found, strict=True))
    print_row(
        f"signs of dishonesty in a trial ({given.sandbox})",
        f"{whole:.2f} s",
        peer=f"{whole - looked:.2f} s without",
        ratio=whole / (whole - looked),
        wanted="1.02",
    )


if __name__ == "__main__":
    main()
