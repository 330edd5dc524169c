"""The runs of a folder, newest first: what they were, and which of them are old enough to remove."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.statistics.averages import OfTask, task_mean
from pytest_super.store.json_lines import UNREADABLE
from pytest_super.store.run_folder import last_reruns, stored_results
from pytest_super.store.verdict import read_word

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


# A run that has written something in this time can still be under way.
RECENT_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One run as its files tell."""

    id: str
    agent: str
    model: str | None
    trials: int
    errors: int
    solved: float | None
    """The share of the valid trials."""
    headline: float | None
    """The mean of what decides whether the tasks are solved, over the valid trials, by the tasks' weights."""
    cost_usd: float | None
    verdict: str
    """What its gates have decided; "" without gates, or if it has not ended."""


def run_folders(directory: Path) -> list[Path]:
    """Without the link `latest`. The ids begin with the time."""
    found = (path for path in (directory / "runs").glob("*") if path.is_dir() and not path.is_symlink())
    return sorted(found, reverse=True)


def find_run(directory: Path, name: str) -> Path:
    """The folder of a stored run: by its id, as `latest`, or by its path. Raises SuperError."""
    for path in (directory / "runs" / name, Path(name)):
        # Unlike the method of Path, it raises nothing for a name of any length.
        if os.path.isfile(path / "run.json"):
            return path.resolve()
    raise SuperError(f"there is no run {directory / 'runs' / name}")


def scored_again(run: Path) -> list[Path]:
    """The runs that a run was scored again as, also by way of others, from the oldest to the newest."""
    found = [run]
    for path in sorted(run.parent.glob("*/run.json")):
        with suppress(*UNREADABLE):
            origin = json.loads(path.read_text(encoding="utf-8")).get("rescored")
            if origin in [one.name for one in found] and not path.parent.is_symlink():
                found.append(path.parent)
    return found[1:]


def stored_runs(directory: Path) -> Iterator[StoredRun]:
    """Runs that cannot be read are left out: they have no results yet, or are damaged."""
    for folder in run_folders(directory):
        try:
            facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            results = [one for one in last_reruns(stored_results(folder)) if not one.is_interrupted]
            valid = [one for one in results if not one.is_error]
            costs = [one.cost_usd for one in results if one.cost_usd is not None]
            yield StoredRun(
                id=folder.name,
                agent=str(facts["agent"]),
                model=None if facts["model"] is None else str(facts["model"]),
                trials=len(results),
                errors=len(results) - len(valid),
                solved=task_mean(OfTask(one.id, one.weight, float(one.solved)) for one in valid),
                headline=task_mean(OfTask(one.id, one.weight, one.headline_value) for one in valid),
                cost_usd=sum(costs) if costs else None,
                verdict=read_word(folder),
            )
        except UNREADABLE:
            continue


def remove_runs(directory: Path, *, keep: int, but: Collection[str]) -> list[str]:
    """Remove all but the newest `keep` runs, those in `but`, and recent ones. Returns their ids."""
    old = [path for path in run_folders(directory)[keep:] if path.name not in but and not is_recent(path)]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return [path.name for path in old if not path.exists()]


def is_recent(folder: Path) -> bool:
    times = [path.stat().st_mtime for path in (folder, *folder.glob("*"), *folder.glob("trials/*/*"))]
    return time.time() - max(times) < RECENT_SECONDS
