"""The snapshots in the user's cache folder, each an archive of files and a record of its steps.

They are named by everything that their files depend on.
"""

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_super.digests import digest, tree_of
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.trajectory import Step, step_from_data, step_to_data
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Task

# Part of every name, so that snapshots of another format are not used.
FORMAT = 3
# Suffix of the file that names the last snapshot of a task.
OWNER = ".owner"
# Seconds that a trial waits for another one to make the snapshot that both need.
LOCK_SECONDS = 300.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class SnapshotRecord:
    steps: list[Step] = field(default_factory=list)
    """The steps it covers, as they were run when it was made."""
    kernel: str = ""
    """Digest of the kernel's state after these steps."""
    useless: str = ""
    """Why there is no archive, so that every trial runs the prefix itself."""
    expires: float | None = None
    """When the record stops being valid, in seconds since the epoch."""


def archive_of(path: Path) -> Path:
    """The archive that belongs to the record at `path`."""
    return path.with_suffix(".tar")


def read_record(path: Path) -> SnapshotRecord | None:
    """Read a record; None if there is no valid one or the archive is missing."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        record = SnapshotRecord(**{**data, "steps": [step_from_data(step) for step in data["steps"]]})
        is_over = record.expires is not None and record.expires < time.time()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # A record that was cut short, or of another version, is made again.
        return None
    return None if is_over or not (record.useless or archive_of(path).exists()) else record


def write_record(path: Path, record: SnapshotRecord) -> None:
    """Raises OSError."""
    data: dict[str, Any] = {**asdict(record), "steps": [step_to_data(step) for step in record.steps]}
    write_atomically(path, json.dumps(data))


def replace_snapshot(path: Path, owner: str) -> None:
    """Make the snapshot at `path` the only one of its owner. Raises OSError."""
    last = path.parent / f"{owner}{OWNER}"
    # ValueError: the file does not contain a file name.
    with suppress(FileNotFoundError, ValueError):
        former = path.with_name(last.read_text())
        if former != path:
            remove_snapshot(former)
    write_atomically(last, path.name)


def remove_snapshots(folder: Path) -> int:
    """Remove all snapshots; returns their number."""
    for last in folder.glob(f"*{OWNER}"):
        last.unlink(missing_ok=True)
    return sum(map(remove_snapshot, folder.glob("*.json")))


def remove_snapshot(path: Path) -> bool:
    """Remove a record and its archive. Whether there was an archive: a record alone is not a snapshot."""
    had_archive = archive_of(path).exists()
    for file in (path, archive_of(path)):
        with suppress(OSError):
            file.unlink(missing_ok=True)
    return had_archive


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a lock against other processes on this machine. Raises OSError, also if it is not free in time."""
    deadline = time.monotonic() + LOCK_SECONDS
    # The file is never removed, or two trials could hold locks on two files of this name.
    with path.open("w") as file:
        # Polled, because a blocking `flock` has no time-out.
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(LOOK_SECONDS)
        yield


def snapshot_name(task: Task, length: int, identity: str) -> str:
    """A name that is the same for the same first `length` steps on the same files in the same sandbox."""
    steps = [step.model_dump() for step in task.pre_execute[:length]]
    # What is masked while the prefix runs is the same for all items of a paper.
    masked = [one.target for one in task.whole.functions] if isinstance(task, PaperItem) else []
    return digest([FORMAT, identity, repository_of(task), masked, steps])


def owner_name(task: Task) -> str:
    """A name that is the same for every version of a task. Each owner has at most one snapshot."""
    return digest([task._path, task.whole.id if isinstance(task, PaperItem) else task.id])


def repository_of(task: Task) -> Any:
    repository = task.repository
    if repository is None or not repository.provide:
        return None
    if repository.path is None:
        return repository.model_dump()
    # A folder is not pinned: its files can change.
    root = task.folder / repository.path
    return [root.name, tree_of(root)]
