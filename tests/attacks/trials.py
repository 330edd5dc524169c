"""Runs an attacking agent on a task by `pytest`, in a process of its own, and reads the result."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECONDS = 300


def results_of(folder: Path, files: Mapping[str, str], *options: str) -> list[dict[str, Any]]:
    """The stored results of a run in `folder` with these files; `agent.py` has the class `Agent`."""
    for name, text in {"pytest.ini": "[pytest]\n", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "--super-agent=agent:Agent", "-pno:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    stored = sorted(folder.glob(".super/runs/*/results.jsonl"))
    if not stored:
        raise RuntimeError(f"the run has no results:\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in stored[-1].read_text().splitlines()]
