"""The machines on which a run has workers: its limits are divided among them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pytest_super.platform import host

if TYPE_CHECKING:
    from pathlib import Path


def this_machine() -> str:
    return hashlib.sha256(host().host_id().encode()).hexdigest()[:12]


def join(run: Path) -> None:
    """Let the run know of this machine. xdist starts no trial before each worker has collected the tasks."""
    folder = run / "machines"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / this_machine()).touch()


def machines(run: Path) -> int:
    """How many machines have workers of the run."""
    return len(list((run / "machines").glob("*"))) or 1


def calls_file(run: Path, controller: str) -> Path:
    """The file of this machine's model calls: machines cannot append to one file of a network file system."""
    machine = this_machine()
    return run / ("calls.jsonl" if machine == controller else f"calls-{machine}.jsonl")
