"""The harness's own time for an item of a paper in containers, compared with two bare kernels in containers.

Usage: python benchmarks/papers.py [--small] [--items 20]      (needs a container engine and the kernel image)

An item starts two sandboxes, masks the repository, collects what the agent left and grades it. Its command
takes no time here, so what is measured is the overhead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rows import print_row

from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.tasks.sandbox_spec import SandboxSpec

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def function(number: int) -> str:
    return f"def function_{number}(values):\n    return sum(values) + {number}\n"


def write_paper(folder: Path, items: int) -> None:
    (folder / "code").mkdir()
    functions = [function(number) for number in range(items)]
    (folder / "code" / "sums.py").write_text("\n\n".join(functions))
    task = {
        "id": "paper",
        "set": "functions",
        "query": "Write the missing functions.",
        "repository": {"path": "code", "provide": True},
        "functions": [
            {"target": f"sums.py::function_{number}", "sha256": hashlib.sha256(text.encode()).hexdigest()}
            for number, text in enumerate(functions)
        ],
        "experiments": [{"name": "nothing", "command": "true", "result": [{"exit": 0}]}],
    }
    (folder / "paper.task.yaml").write_text(json.dumps(task))
    (folder / "pytest.ini").write_text("[pytest]\n")


def seconds_of_items(items: int) -> float:
    with tempfile.TemporaryDirectory() as name:
        write_paper(Path(name), items)
        options = ["--super-agent=gold", "--super-sandbox=docker", "-q", "paper.task.yaml"]
        started = time.perf_counter()
        command = [sys.executable, "-m", "pytest", *options]
        subprocess.run(command, cwd=name, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started


def seconds_of_kernels(count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        kernel = Kernel(DockerSandbox(SandboxSpec(), SandboxSettings()))
        kernel.start()
        kernel.execute("1")
        kernel.close()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="two items")
    parser.add_argument("--items", type=int, default=20)
    given = parser.parse_args()
    items = 2 if given.small else given.items
    # The start of pytest is not an item's.
    ours = (seconds_of_items(items + 1) - seconds_of_items(1)) / items
    theirs = seconds_of_kernels(2 * items) / items
    print_row(
        "an item of a paper, beyond its commands / two kernels in containers, in turn (`papers.py`)",
        f"{ours:.2f} s",
        peer=f"{theirs:.2f} s",
        ratio=ours / theirs,
        wanted="2 s",
    )


if __name__ == "__main__":
    main()
