"""`pytest --collect-only` on one trivial test, with and without the plugin: the cost for every user.

Usage: python benchmarks/startup.py [--small] [--rounds 20]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rows import print_row

# Byte code is cached, as on a developer's machine.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(folder: Path, *arguments: str) -> float:
    """Processor seconds of one run. Other load on the machine affects them less than the wall time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    rounds = 1 if given.small else given.rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_a.py").write_text("def test_a(): pass\n")
        pairs = [(seconds(folder), seconds(folder, "-p", "no:super")) for _ in range(rounds + 1)][1:]
    with_plugin, without = (statistics.median(column) for column in zip(*pairs, strict=True))
    print_row(
        "`pytest --collect-only` on one test, with the plugin / without (`startup.py`)",
        f"{with_plugin:.3f} s",
        peer=f"{without:.3f} s",
        ratio=with_plugin / without,
        wanted="1.05",
    )


if __name__ == "__main__":
    main()
