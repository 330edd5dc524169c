"""The note in a run's folder that its gates are decided, which workers on any machine see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors

if TYPE_CHECKING:
    from pathlib import Path

FILE = "decided.json"


def write_decided(run: Path, epoch: int) -> None:
    """The gates are decided after this epoch. Raises InfrastructureError."""
    with disk_errors(run / FILE):
        write_atomically(run / FILE, json.dumps({"epochs": epoch}) + "\n")


def decided_after(run: Path) -> int | None:
    """The epoch; None if the gates are not decided."""
    try:
        epoch: int = json.loads((run / FILE).read_text(encoding="utf-8"))["epochs"]
    except FileNotFoundError:
        return None
    return epoch
