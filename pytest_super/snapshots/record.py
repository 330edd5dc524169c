"""What is known of a snapshot beside its files: a text in the user's cache folder."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.trajectory import Step, step_from_data, step_to_data

if TYPE_CHECKING:
    from collections.abc import Iterator

# Part of every name: what was saved in another manner is not used.
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Record:
    steps: list[Step] = field(default_factory=list)
    """As they went when the snapshot was made."""
    state: dict[str, str] = field(default_factory=dict)
    """Digests of what the kernel was after them, by part."""
    written: int = 0
    """Bytes."""
    useless: str = ""
    """Why the prefix is run by every trial all the same."""


def snapshots_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "pytest-super" / "snapshots"


def read_record(path: Path) -> Record | None:
    """None where there is none, or none that can be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Record(**{**data, "steps": [step_from_data(step) for step in data["steps"]]})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_record(path: Path, record: Record) -> None:
    """Whole, or not at all. Raises OSError."""
    data: dict[str, Any] = {**asdict(record), "steps": [step_to_data(step) for step in record.steps]}
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(data), encoding="utf-8")
    new.replace(path)


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold it, alone on this machine; waits for who else does. It ends with the process."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
