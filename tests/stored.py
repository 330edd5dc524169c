"""Runs on disk as a session stores them, made without one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import RunFolder, create_run
from pytest_super.store.trajectory import Action, Step
from pytest_super.store.trial_folder import TrialFolder


def a_result(id: str = "mean", *, accuracy: float = 1.0, **fields: Any) -> TrialResult:
    """The result of a valid trial, unless `fields` say otherwise."""
    given: dict[str, Any] = {
        "set": "masked",
        "category": "data",
        "epoch": 1,
        "rerun": 0,
        "agent": "mine.agents:Agent",
        "conditions": "c",
        "scoring": "s",
        "headline": "accuracy",
        "metrics": {"accuracy": accuracy, "landmarks": accuracy, "submitted": 1.0},
        "applicable": ["accuracy", "landmarks", "submitted"],
        "submitted": True,
        "solved": accuracy == 1,
        "stop_reason": "submitted",
        "compute_seconds": 3.5,
        "wall_seconds": 20.0,
        "prompt_tokens": 1000,
        "cost_usd": 0.02,
        "steps": 2,
        "started": "2026-11-23T10:15:00.000+00:00",
        "worker": "main",
    }
    return TrialResult(id=id, **{**given, **fields})


def a_step(number: int = 1, *, type: str = "execute", content: str = "1 + 1", **fields: Any) -> Step:
    return Step(number=number, origin="agent", action=Action(type=type, content=content), **fields)


def a_run(folder: Path, name: str = "20261123-101500-ab12", **facts: Any) -> RunFolder:
    return create_run(folder, {"id": name, "agent": "mine.agents:Agent", "model": "openai/m", **facts}, name)


def add_trial(run: RunFolder, result: TrialResult, steps: Sequence[Step] = ()) -> Path:
    """Store a trial that has ended; returns its folder."""
    folder = TrialFolder(run.path, result)
    for step in steps:
        folder.write_step(step)
    folder.write_result(folder.start)
    folder.close()
    run.record(folder.start)
    return folder.path


def append_line(path: Path, data: Any) -> None:
    """Add a line as another version of the package, or a person, could have written it."""
    with path.open("a", encoding="utf-8") as file:
        file.write(data if isinstance(data, str) else f"{json.dumps(data)}\n")
