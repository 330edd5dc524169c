"""`pytest --collect-only` on one trivial test, with the plugin and without: the ratio that everybody pays.

Usage: python benchmarks/startup.py [ROUNDS]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = 1.05

# As on a machine where people work: byte code is cached.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(folder: Path, *arguments: str) -> float:
    """Processor seconds of one run, which a busy machine disturbs less than its wall time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_a.py").write_text("def test_a(): pass\n")
        pairs = [(seconds(folder), seconds(folder, "-p", "no:super")) for _ in range(rounds + 1)][1:]
    with_plugin, without = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = with_plugin / without
    print(f"startup: {with_plugin:.3f} s with / {without:.3f} s without = {ratio:.3f} (target {TARGET})")


if __name__ == "__main__":
    main()
