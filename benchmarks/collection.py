"""Collecting task files compared with as many one-test Python files, one file of many tasks, and one paper.

The figures are processor time.

Usage: python benchmarks/collection.py [--small] [--large]        (--large: 10,000 files too)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from math import comb
from pathlib import Path

from rows import print_row

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

# Byte code is cached, as on a developer's machine.
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
    """Processor time, since other programs would add to the wall time of either side."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", *arguments]
    before = os.times()
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def compare(folder: Path, title: str, rounds: int, target: float) -> None:
    """Print the medians of interleaved rounds, after one round that warms the caches of both."""
    pairs = [
        (seconds(folder, "--super-agent=gold", "tasks"), seconds(folder, "tests")) for _ in range(rounds + 1)
    ][1:]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    print_row(title, f"{ours:.2f} s", peer=f"{theirs:.2f} s", ratio=ours / theirs, wanted=f"{target}")


def many_files(count: int, kind: str, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks").mkdir()
        (folder / "tests").mkdir()
        for number in range(count):
            (folder / "tasks" / f"t{number}.task.yaml").write_text(task(number, SIZES[kind]))
            (folder / "tests" / f"test_{number}.py").write_text(f"def test_{number}(): pass\n")
        title = (
            f"collecting {count:,} task files of {kind} / {count:,} one-test Python files (`collection.py`)"
        )
        compare(folder, title, rounds, 1.0)


def one_file(count: int, kind: str, rounds: int) -> None:
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
        title = f"one file of {count:,} tasks of {kind} / {count:,} parametrized tests (`collection.py`)"
        compare(folder, title, rounds, 2.0)


def one_paper(functions: int, n: int, rounds: int) -> None:
    count = comb(functions, n)
    paper = {
        "id": "2205.00048",
        "set": "functions",
        "query": "Write the missing functions.",
        "repository": {"pypi": "code", "version": "1", "sha256": "0" * 64, "provide": True},
        "functions": [
            {
                "target": f"code/file_{k}.py::Model.method_{k}",
                "sha256": "0" * 64,
                "passage": "Section 3. " * 50,
            }
            for k in range(functions)
        ],
        "experiments": [
            {"name": f"table {k}", "command": f"python run.py {k}", "result": [{"exit": 0}]}
            for k in range(12)
        ],
        "n": n,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place in ("tasks", "tests"):
            (folder / place).mkdir()
        (folder / "tasks" / "paper.task.yaml").write_text(json.dumps(paper))
        (folder / "tests" / "test_all.py").write_text(
            f"import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_n(n): pass\n"
        )
        title = (
            f"a paper of {functions} functions at n = {n}, {count:,} items / {count:,} parametrized tests "
            "(`collection.py`)"
        )
        compare(folder, title, rounds, 2.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="20 files, one round")
    parser.add_argument("--large", action="store_true", help="10,000 files too")
    given = parser.parse_args()
    if given.small:
        many_files(20, next(iter(SIZES)), rounds=1)
        one_file(20, next(iter(SIZES)), rounds=1)
        one_paper(5, 2, rounds=1)
        return
    for kind in SIZES:
        many_files(800, kind, rounds=5)
        one_file(1000, kind, rounds=5)
        if given.large:
            many_files(10_000, kind, rounds=5)
    one_paper(37, 3, rounds=5)


if __name__ == "__main__":
    main()
