"""The verdict of a run in its folder, written when it has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, disk_errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "verdict.json"


def write_verdict(run: Path, verdict: Mapping[str, Any]) -> None:
    """Raises InfrastructureError."""
    with disk_errors(run):
        write_atomically(run / FILE, json.dumps(verdict, indent=1) + "\n")


def read_word(run: Path) -> str:
    """The word for all gates of a stored run; "" if it has none that can be read."""
    try:
        return str(json.loads((run / FILE).read_text(encoding="utf-8"))["verdict"])
    except UNREADABLE:
        return ""
