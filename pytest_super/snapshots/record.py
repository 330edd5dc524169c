"""What is known of a snapshot, and its files: two files in the user's cache folder."""

from __future__ import annotations

import fcntl
import json
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.trajectory import Step, step_from_data, step_to_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Part of every name: what was saved in another manner is not used.
FORMAT = 2
# The ending of a file that names the last snapshot that a task made.
OWNER = ".owner"
# How long one trial waits for another that makes what both need.
PATIENCE = 300.0
LOOK_SECONDS = 0.1


class StillMadeError(Exception):
    """Another trial has made the snapshot for so long that it is better not to wait."""


@dataclass(frozen=True, kw_only=True)
class Record:
    steps: list[Step] = field(default_factory=list)
    """As they went when the snapshot was made."""
    state: dict[str, str] = field(default_factory=dict)
    """Digests of what the kernel was after them, by part."""
    useless: str = ""
    """Why the prefix is run by every trial all the same."""
    expires: float | None = None
    """When it counts no more, in seconds since the epoch."""


def archive_of(path: Path) -> Path:
    """The files of the snapshot whose record is at `path`."""
    return path.with_suffix(".tar")


def read_record(path: Path) -> Record | None:
    """None where there is none, or none that counts."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        record = Record(**{**data, "steps": [step_from_data(step) for step in data["steps"]]})
        is_over = record.expires is not None and record.expires < time.time()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return None if is_over or not (record.useless or archive_of(path).exists()) else record


def write_record(path: Path, record: Record) -> None:
    """Raises OSError."""
    data: dict[str, Any] = {**asdict(record), "steps": [step_to_data(step) for step in record.steps]}
    write_atomically(path, json.dumps(data))


def replace_snapshot(path: Path, owner: str) -> None:
    """Remove the one that the owner made before this: of each there is one at a time. Raises OSError."""
    made = path.parent / f"{owner}{OWNER}"
    # A ValueError: what stands there is no name.
    with suppress(FileNotFoundError, ValueError):
        former = path.with_name(made.read_text())
        if former != path:
            remove_snapshot(former)
    write_atomically(made, path.name)


def remove_snapshots(folder: Path) -> int:
    """Gives how many there were."""
    for made in folder.glob(f"*{OWNER}"):
        made.unlink(missing_ok=True)
    return sum(map(remove_snapshot, folder.glob("*.json")))


def remove_snapshot(path: Path) -> bool:
    """Whether there was one: a record alone says why there is none."""
    was_there = archive_of(path).exists()
    for file in (path, archive_of(path)):
        with suppress(OSError):
            file.unlink(missing_ok=True)
    return was_there


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold it, alone on this machine; it ends with the process. Raises StillMadeError and OSError."""
    deadline = time.monotonic() + PATIENCE
    with path.open("w") as file:
        while not try_lock(file.fileno()):
            if time.monotonic() > deadline:
                raise StillMadeError
            time.sleep(LOOK_SECONDS)
        yield


def try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
