"""The published expert trajectories of SUPER, for tests that compare with them.

They are not part of the project. The tests look for them in the folder that SUPER_SHARED_DATA names, or else
in ../shared/data next to the project, and are skipped if they are not there.
"""

import json
import os
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pytest_super.store.published import PublishedTrajectory, read_history
from pytest_super.store.trajectory import Step

ARCHIVE = "super-trajectories-expert.tar.xz"
RECOVERED = "super-expert-recovered.jsonl"


@dataclass(frozen=True)
class Trajectory:
    task: str
    history: PublishedTrajectory
    metrics: dict[str, Any]

    @property
    def agent(self) -> str:
        return self.history.agent

    @property
    def steps(self) -> list[Step]:
        return self.history.steps


def data_folder() -> Path:
    beside = Path(__file__).parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("SUPER_SHARED_DATA", beside))
    if not all((folder / name).is_file() for name in (ARCHIVE, RECOVERED)):
        pytest.skip(f"needs {ARCHIVE} and {RECOVERED}: set SUPER_SHARED_DATA to their folder")
    return folder


def expert_tasks() -> dict[str, dict[str, Any]]:
    lines = (data_folder() / RECOVERED).read_text(encoding="utf-8").splitlines()
    return {task["task_id"]: task for task in map(json.loads, lines)}


def expert_trajectories() -> list[Trajectory]:
    return _read_archive(data_folder() / ARCHIVE)


@cache
def _read_archive(path: Path) -> list[Trajectory]:
    with TemporaryDirectory() as folder, tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
        return [
            Trajectory(
                task=file.parent.name,
                history=read_history(file),
                metrics=json.loads(file.with_name("metrics.json").read_text(encoding="utf-8")),
            )
            for file in sorted(Path(folder).glob("*/*/history.ipynb"))
        ]
