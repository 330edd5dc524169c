"""A task in the form of Harbor, written by hand, for tests."""

from pathlib import Path

SETTINGS = """\
schema_version = "1.4"
artifacts = ["/app/mean.txt"]

[task]
name = "example/mean"
keywords = ["arithmetic"]

[metadata]
category = "Data Science"
created = 2026-11-01

[agent]
timeout_sec = 120.0

[verifier]
timeout_sec = 60.0
env = { WANTED = "2.5" }

[environment]
workdir = "/app"
cpus = 1
memory_mb = 512
allow_internet = false
something = "unknown"
"""
TEST = """\
#!/bin/bash
# Writes a file in its folder, which must be its own, and not one that an agent has made.
ls /tests > /logs/verifier/files.txt
if python3 /tests/check.py; then reward=1; else reward=0; fi
echo $reward > /logs/verifier/reward.txt
"""
CHECK = """\
import os, pathlib
assert float(pathlib.Path("mean.txt").read_text()) == float(os.environ["WANTED"])
"""
SOLVE = """\
#!/bin/bash
awk '{sum += $1} END {print sum / NR}' numbers.txt > mean.txt
"""


def add_task(folder: Path, settings: str = SETTINGS, *, base: str = "python:3.11", test: str = TEST) -> Path:
    """The folder, which must not exist, with the files of a task."""
    files = {
        "task.toml": settings,
        "instruction.md": "Write the mean of the numbers in `numbers.txt` into `/app/mean.txt`.\n",
        "environment/Dockerfile": f'FROM {base}\nWORKDIR /app\nRUN printf "1\\n4\\n" > numbers.txt\n',
        "tests/test.sh": test,
        "tests/check.py": CHECK,
        # A usual name, which pytest must not collect on this machine.
        "tests/test_outputs.py": "raise SystemExit(3)\n",
        "solution/solve.sh": SOLVE,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
