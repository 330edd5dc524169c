"""Runs an attacking agent on a task by `pytest`, in a process of its own, and reads the result."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Of processor time, which does not depend on what else the machine does.
SECONDS = 300
# Only reached by what waits for ever.
LONGEST_WAIT = 3600
CONFTEST = """
import json, resource
import pytest

def used():
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    before = used()
    result = yield
    with open("processor.jsonl", "a") as file:
        print(json.dumps([item.task.id, used() - before]), file=file)
    return result
"""


def results_of(folder: Path, files: Mapping[str, str], *options: str) -> list[dict[str, Any]]:
    """The stored results of a run in `folder` with these files; `agent.py` has the class `Agent`.

    Each has also `processor_seconds`: what its trial took on the host.
    """
    for name, text in {"pytest.ini": "[pytest]\n", "conftest.py": CONFTEST, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "--super-agent=agent:Agent", "-pno:cacheprovider", *options]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONGEST_WAIT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
    )
    stored = sorted(folder.glob(".super/runs/*/results.jsonl"))
    if not stored:
        raise RuntimeError(f"the run has no results:\n{done.stdout}{done.stderr}")
    used = dict(map(json.loads, (folder / "processor.jsonl").read_text().splitlines()))
    rows = map(json.loads, stored[-1].read_text().splitlines())
    return [{**row, "processor_seconds": used[row["id"]]} for row in rows]
