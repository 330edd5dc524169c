"""Collecting task files beside collecting as many one-test Python files, and one file of many tasks.

Usage: python benchmarks/collection.py [--large]        (--large: 10,000 files too)
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASK = """\
id: task-{number}
set: expert
category: data
query: |
{query}
answer: {{accuracy: 0.91, f1: 0.88}}
landmarks: ['training completed {number}', 'epoch \\d+']
solution:
  cells:
{cells}
---
"""
# As long as SUPER's own tasks: 7.4 kB.
QUERY = "\n".join(f"  Line {n} of a query that tells precisely what is to be run." for n in range(40))
CELLS = "\n".join(
    f"    - |\n      print('a cell of the solution, number {n}, with its code')" for n in range(60)
)
ROUNDS = 5

# As on a machine where people work: byte code is cached.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def task(number: int) -> str:
    return TASK.format(number=number, query=QUERY, cells=CELLS)


def seconds(folder: Path, *arguments: str) -> float:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", *arguments]
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def compare(folder: Path, title: str, target: float) -> None:
    """Median of interleaved rounds, after one that warms the caches of both."""
    pairs = [
        (seconds(folder, "--super-agent=gold", "tasks"), seconds(folder, "tests")) for _ in range(ROUNDS + 1)
    ][1:]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{title}: {ours:.2f} s tasks / {theirs:.2f} s tests = {ours / theirs:.2f} (target {target})")


def many_files(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks").mkdir()
        (folder / "tests").mkdir()
        for number in range(count):
            (folder / "tasks" / f"t{number}.task.yaml").write_text(task(number))
            (folder / "tests" / f"test_{number}.py").write_text(f"def test_{number}(): pass\n")
        compare(folder, f"{count:,} files", 1.0)


def one_file(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks").mkdir()
        (folder / "tests").mkdir()
        (folder / "tasks" / "all.task.yaml").write_text("".join(map(task, range(count))))
        (folder / "tests" / "test_all.py").write_text(
            f"import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_n(n): pass\n"
        )
        compare(folder, f"one file of {count:,}", 2.0)


def main() -> None:
    many_files(800)
    one_file(1000)
    if "--large" in sys.argv:
        many_files(10_000)


if __name__ == "__main__":
    main()
