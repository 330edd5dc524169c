"""Stored trials, ours and published ones: their trajectories, and the figures stored next to them."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.metrics.registry import PAPER, REFERENCE, SCORINGS
from pytest_super.store.checked import checked_result
from pytest_super.store.json_lines import UNREADABLE, damage, read_json, read_object
from pytest_super.store.published import read_history
from pytest_super.store.results import RUNNING, TRIAL_FOLDER, TrialResult, read_result
from pytest_super.store.step_values import submission_of
from pytest_super.store.trajectory import Step, read_trajectory
from pytest_super.words import counted

Figures = dict[str, float | None]

# Names of the metrics in a published metrics.json; the published code has a newer one for landmarks.
PUBLISHED_NAMES = {
    "output_match": "accuracy",
    "checkpoints": "landmarks",
    "landmarks": "landmarks",
    "entrypoint": "script_executed",
    "submitted": "submitted",
}
_PUBLISHED_FOLDER = re.compile(r"(?P<model>.+)_(?:react-super|swe-agent)_(?P<set>[a-z]+)")


@dataclass(frozen=True, kw_only=True)
class StoredTrial:
    """One trial on disk."""

    path: Path
    result: TrialResult
    """Without figures if there is no file of them. `error` says why the trial has no score."""
    steps: list[Step]
    is_published: bool
    scoring: str
    """Which of the SCORINGS computed the figures."""

    @property
    def group(self) -> tuple[str, str]:
        """Its agent, with the model if that is known, and its set."""
        return " ".join(filter(None, (self.result.agent, self.result.model))), self.result.set

    @cached_property
    def submit_step(self) -> Step | None:
        given = [step for step in self.steps if step.action.type == "submit" and step.outcome == "ok"]
        return given[-1] if given else None

    @property
    def submission(self) -> Any:
        return submission_of(self.submit_step.action.content) if self.submit_step else None


def read_trials(paths: Iterable[Path]) -> tuple[list[StoredTrial], list[str]]:
    """The last reruns at and below `paths`, and why others are unreadable. Raises SuperError without any."""
    trials: list[StoredTrial] = []
    broken: list[str] = []
    # By the real path, so that a file that is named twice is scored once.
    files = {file.resolve(): file for folder in paths for file in trajectory_files(folder)}
    for path in files.values():
        try:
            trials.append(read_published(path) if path.suffix == ".ipynb" else read_ours(path))
        except SuperError as error:
            broken.append(str(error))
        except UNREADABLE as error:
            broken.append(f"{path} is not a trajectory: {damage(error)}")
    return trials, broken


def trajectory_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [*path.rglob("history.ipynb"), *last_reruns(path.rglob("trajectory.jsonl"))]
    if not found:
        raise SuperError(f"{path} has no trajectory: there is no history.ipynb and no trajectory.jsonl")
    return sorted(found)


def last_reruns(files: Iterable[Path]) -> Iterator[Path]:
    """The last rerun of each task and epoch that has ended, or that began; and files in other folders."""
    last: dict[tuple[Path, int], tuple[bool, int, Path]] = {}
    for file in files:
        if TRIAL_FOLDER.fullmatch(file.parent.name) is None:
            yield file
            continue
        epoch, rerun = map(int, file.parent.name.split("."))
        key = (file.parent.parent, epoch)
        result = read_result(file.with_name("result.json"))
        has_ended = result is not None and result.stop_reason != RUNNING
        last[key] = max(last.get(key, (False, 0, file)), (has_ended, rerun, file))
    yield from (file for *_, file in last.values())


def read_published(path: Path) -> StoredTrial:
    """Raises SuperError."""
    history = read_history(path)
    # Not `parents[1]`, which fails for a copy at the root.
    run = _PUBLISHED_FOLDER.fullmatch(path.absolute().parent.parent.name)
    result = TrialResult(
        id=path.absolute().parent.name,
        set=run["set"] if run else "",
        category=None,
        epoch=1,
        rerun=0,
        agent=history.agent,
        model=run["model"] if run else None,
        metrics=read_metrics(path.with_name("metrics.json")),
    )
    # The published code did not score the step in which tokens or time ran out.
    steps = [with_json(step) for step in history.steps if step.action.type != "exception"]
    return StoredTrial(path=path, result=result, steps=steps, is_published=True, scoring=REFERENCE)


def with_json(step: Step) -> Step:
    """The step, with a submission as JSON, as in our trajectories."""
    if step.action.type != "submit":
        return step
    content = json.dumps(submission_of(step.action.content))
    return replace(step, action=replace(step.action, content=content))


def read_metrics(path: Path) -> Figures:
    """The figures of a metrics.json; empty without the file. Raises SuperError for any other content."""
    if not path.exists():
        return {}
    try:
        data = read_json(path)
        return {ours: number(data[name]) for name, ours in PUBLISHED_NAMES.items() if name in data}
    except UNREADABLE as error:
        raise SuperError(f"{path} does not contain the metrics of a trial: {damage(error)}") from None


def number(value: Any) -> float | None:
    # `isfinite` raises OverflowError for an integer that no float can be.
    if value is not None and not (isinstance(value, int | float) and isfinite(value)):
        raise TypeError(f"{value!r} is not a finite number")
    return value


def read_ours(path: Path) -> StoredTrial:
    """Raises SuperError, or one of UNREADABLE."""
    result = read_result(path.with_name("result.json"))
    if result is None:
        raise SuperError(f"{path} has no valid result.json next to it")
    try:
        result = checked_result(result)
    except ValueError as wrong:
        raise SuperError(f"{path} has no valid result.json next to it: {wrong}") from None
    error = "the trial did not end" if result.stop_reason == RUNNING else result.error
    result = replace(result, error=error)
    # From RUN/trials/TASK/EPOCH.RERUN/trajectory.jsonl. Not `parents[3]`, which fails near the root.
    scoring = read_object(path.absolute().parent.parent.parent.parent / "run.json").get("scoring")
    if scoring not in SCORINGS:
        scoring = PAPER
    steps = read_trajectory(path)
    own = sum(step.origin == "agent" for step in steps)
    if error is None and own < result.steps:
        raise SuperError(f"{path} is cut: it has {own} of the agent's {counted(result.steps, 'step')}")
    return StoredTrial(path=path, result=result, steps=steps, is_published=False, scoring=scoring)
