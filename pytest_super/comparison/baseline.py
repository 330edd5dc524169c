"""The baseline: a small JSON file with a run's trials, one line a task, so that it diffs well in git."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from math import inf
from typing import TYPE_CHECKING, Any

from pytest_super.comparison.side import Side, TaskTrials, side_of_run
from pytest_super.errors import SuperError
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.checked import checked
from pytest_super.store.json_lines import disk_errors

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
# Digits of means that nobody decides by, so that a file changes only where something did.
DIGITS = 4
# Of numbers, and of nested lists.
TOO_LARGE = (OverflowError, RecursionError)


def write_baseline(path: Path, side: Side) -> None:
    """Raises InfrastructureError if the disk refuses."""
    head = {
        "format": FORMAT,
        "run": side.name,
        "trials": side.trials,
        "errors": side.errors,
        "subject": side.subject,
    }
    tasks = ",\n".join(
        f"  {json.dumps(id)}: {json.dumps(data_of(task))}" for id, task in sorted(side.tasks.items())
    )
    before = json.dumps(head, indent=1, sort_keys=True).removesuffix("\n}")
    with disk_errors(path):
        write_atomically(path, f'{before},\n "tasks": {{\n{tasks}\n }}\n}}\n')


def data_of(task: TaskTrials) -> dict[str, Any]:
    return {
        name: round(value, DIGITS) if isinstance(value, float) and name != "weight" else value
        for name, value in asdict(task).items()
    }


def read_side(path: Path) -> Side:
    """A baseline, or a run's folder. Raises SuperError."""
    return side_of_run(path) if path.is_dir() else read_baseline(path)


def read_baseline(path: Path) -> Side:
    """Raises SuperError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise SuperError(f"{path}: its format is {data['format']}, not {FORMAT}: make it anew")
        return Side(
            name=path.name,
            subject=dict(data["subject"]),
            tasks={str(id): task_from(task) for id, task in data["tasks"].items()},
            trials=int(data["trials"]),
            errors=int(data["errors"]),
        )
    except FileNotFoundError:
        raise SuperError(
            f"there is no baseline {path}: make it with `pytest-super baseline update`"
        ) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, *TOO_LARGE) as error:
        raise SuperError(f"{path} is no baseline: {error!r}") from None


def task_from(data: dict[str, Any]) -> TaskTrials:
    """Raises TypeError, ValueError and KeyError."""
    known = {field.name for field in fields(TaskTrials)}
    task = TaskTrials(**{name: value for name, value in data.items() if name in known})
    if not task.values or not all(
        isinstance(value, int | float) and 0 <= value <= 1 for value in task.values
    ):
        raise ValueError(f"`values` should be numbers from 0 to 1, not {task.values}")
    task = checked(TaskTrials, asdict(task))
    if not 0 < task.weight < inf:
        raise ValueError(f"`weight` should be a number above 0, not {task.weight}")
    return task
