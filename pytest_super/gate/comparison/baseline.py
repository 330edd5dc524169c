"""The baseline: a small JSON file with a run's trials, one line a task, so that it diffs well in git."""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.gate.comparison.side import Side, TaskTrials, date_of, side_of_run
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, damage, disk_errors, read_json

FORMAT = 2
# Digits of means that nobody decides by, so that a file changes only where something did.
DIGITS = 4


def write_baseline(path: Path, side: Side) -> None:
    """Raises InfrastructureError if the disk refuses."""
    head = {
        "format": FORMAT,
        "run": side.run,
        "runs": side.runs,
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
        if name != "replayed"
    }


def read_side(path: Path) -> Side:
    """A baseline, or a run's folder. Raises SuperError."""
    return side_of_run(path) if path.is_dir() else read_baseline(path)


def read_baseline(path: Path) -> Side:
    """Raises SuperError."""
    try:
        data = read_json(path)
        if data["format"] != FORMAT:
            raise SuperError(f"{path}: its format is {data['format']}, not {FORMAT}: make it anew")
        return Side(
            name=path.name,
            run=str(data["run"]),
            subject=dict(data["subject"]),
            tasks={str(id): task_from(task) for id, task in data["tasks"].items()},
            trials=int(data["trials"]),
            errors={str(id): int(errors) for id, errors in data["errors"].items()},
            runs={str(run): date_of(day) for run, day in data.get("runs", {}).items()},
        )
    except FileNotFoundError:
        raise SuperError(
            f"there is no baseline {path}: make it with `pytest-super baseline update`"
        ) from None
    except UNREADABLE as error:
        raise SuperError(f"{path} is no baseline: {damage(error)}") from None


def task_from(data: dict[str, Any]) -> TaskTrials:
    """Raises TypeError, ValueError and KeyError."""
    known = {field.name for field in fields(TaskTrials)}
    return TaskTrials(**{name: value for name, value in data.items() if name in known})
