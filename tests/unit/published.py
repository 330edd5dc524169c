"""The published expert trajectories of SUPER, for tests that compare with them.

They are not part of the project. The tests look for them in the folder that SUPER_SHARED_DATA names, or else
in ../shared/data next to the project, and are skipped if they are not there.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_super.store.trajectory import Action, Step

ARCHIVE = "super-trajectories-expert.tar.xz"
RECOVERED = "super-expert-recovered.jsonl"


@dataclass(frozen=True)
class Trajectory:
    agent: str
    task: str
    steps: list[Step]
    metrics: dict[str, Any]


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
    with tarfile.open(path) as archive:
        opened = {member.name: archive.extractfile(member) for member in archive}
        files = {name: json.load(file) for name, file in opened.items() if file is not None}
    return [
        Trajectory(
            agent=name.split("_")[1],
            task=name.split("/")[1],
            steps=_steps(notebook["cells"]),
            metrics=files[name.replace("history.ipynb", "metrics.json")],
        )
        for name, notebook in sorted(files.items())
        if name.endswith("history.ipynb")
    ]


def _steps(cells: list[dict[str, Any]]) -> list[Step]:
    steps: list[Step] = []
    seconds, type = 0.0, ""
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            steps.append(_step(len(steps) + 1, type, source, cell["outputs"], seconds))
        elif time := re.search(r"duration: (\d+) seconds", source):
            seconds = float(time[1]) + 0.5  # published rounded down
        elif action := re.match(r"\*\*Action \((.*?)\)\*\*", source, re.DOTALL):
            type = "execute" if action[1] == "None" else action[1]
    return steps


def _step(number: int, type: str, source: str, outputs: list[dict[str, Any]], seconds: float) -> Step:
    observation = "".join(outputs[0]["data"]["text/plain"])
    return Step(
        number=number,
        origin="agent",
        action=Action(type=type, content=source),
        observation=observation,
        outcome="timed_out" if "It is still running" in observation else "ok",
        seconds=seconds,
    )
