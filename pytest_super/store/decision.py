"""The note in a run's folder that its gates are decided, which workers on any machine see.

Code in a local sandbox can write files, too. So the note has a proof that only the run's processes can make.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING

from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, disk_errors

if TYPE_CHECKING:
    from pathlib import Path

FILE = "decided.json"


def write_decided(run: Path, epoch: int, secret: str) -> None:
    """The gates are decided after this epoch. Raises InfrastructureError."""
    with disk_errors(run / FILE):
        note = {"epochs": epoch, "proof": proof_of(epoch, secret)}
        write_atomically(run / FILE, json.dumps(note) + "\n")


def decided_after(run: Path, secret: str) -> int | None:
    """The epoch; None if the gates are not decided, or the note is not ours."""
    try:
        note = json.loads((run / FILE).read_text(encoding="utf-8"))
        epoch = int(note["epochs"])
        return epoch if hmac.compare_digest(str(note["proof"]), proof_of(epoch, secret)) else None
    except UNREADABLE:
        return None


def proof_of(epoch: int, secret: str) -> str:
    return hmac.new(secret.encode(), str(epoch).encode(), "sha256").hexdigest()
