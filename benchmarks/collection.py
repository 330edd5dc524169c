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
# Lines of the query and cells of the solution.
SIZES = {"3.7 kB, as the shipped ones": (20, 28), "7.4 kB, as SUPER's": (40, 60)}
ROUNDS = 5

# As on a machine where people work: byte code is cached.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def task(number: int, size: tuple[int, int]) -> str:
    lines, cells = size
    return TASK.format(
        number=number,
        query="\n".join(
            f"  Line {n} of a query that tells precisely what is to be run." for n in range(lines)
        ),
        cells="\n".join(
            f"    - |\n      print('cell {n} of the solution, with its code')" for n in range(cells)
        ),
    )


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


def many_files(count: int, kind: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks").mkdir()
        (folder / "tests").mkdir()
        for number in range(count):
            (folder / "tasks" / f"t{number}.task.yaml").write_text(task(number, SIZES[kind]))
            (folder / "tests" / f"test_{number}.py").write_text(f"def test_{number}(): pass\n")
        compare(folder, f"{count:,} files of {kind}", 1.0)


def one_file(count: int, kind: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks").mkdir()
        (folder / "tests").mkdir()
        (folder / "tasks" / "all.task.yaml").write_text(
            "".join(task(number, SIZES[kind]) for number in range(count))
        )
        (folder / "tests" / "test_all.py").write_text(
            f"import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_n(n): pass\n"
        )
        compare(folder, f"one file of {count:,} tasks of {kind}", 2.0)


def main() -> None:
    for kind in SIZES:
        many_files(800, kind)
        one_file(1000, kind)
        if "--large" in sys.argv:
            many_files(10_000, kind)


if __name__ == "__main__":
    main()
