"""What `pytest-super why` has found about a trial, as `why.json` in the trial's folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, disk_errors

FILE = "why.json"


class Why(NamedTuple):
    lines: Sequence[str] = ()
    step: int | None = None
    """The number of the step that lost the task; None if no step did, or that is not known."""


def write_why(trial: Path, why: Why) -> None:
    """Raises InfrastructureError."""
    with disk_errors(trial):
        write_atomically(trial / FILE, json.dumps(why._asdict(), ensure_ascii=False))


def read_why(text: bytes) -> Why:
    """Read a file that can be damaged or edited; empty if it cannot be read."""
    try:
        data = json.loads(text)
        step = data["step"] if isinstance(data["step"], int) else None
        return Why([str(line) for line in data["lines"]], step)
    except UNREADABLE:
        return Why()
