"""What the gates of a run have decided, in its folder: the verdict, and before it the note that ends the run.

Workers on any machine see the note. Code in a local sandbox can write files, too, so the note has a proof
that only the run's processes can make.
"""

import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, disk_errors, read_json, read_object

VERDICT = "verdict.json"
NOTE = "decided.json"


def write_verdict(run: Path, verdict: Mapping[str, Any]) -> None:
    """Raises InfrastructureError."""
    with disk_errors(run):
        write_atomically(run / VERDICT, json.dumps(verdict, indent=1) + "\n")


def read_word(run: Path) -> str:
    """The word for all gates of a stored run; "" if it has none that can be read."""
    return str(read_object(run / VERDICT).get("verdict", ""))


def was_compared(run: Path) -> bool:
    """Whether a stored run has ended with a comparison with its baseline."""
    return bool(read_object(run / VERDICT).get("regression"))


def write_decided(run: Path, epoch: int, secret: str) -> None:
    """The gates are decided after this epoch. Raises InfrastructureError."""
    with disk_errors(run / NOTE):
        note = {"epochs": epoch, "proof": proof_of(epoch, secret)}
        write_atomically(run / NOTE, json.dumps(note) + "\n")


def decided_after(run: Path, secret: str) -> int | None:
    """The epoch; None if the gates are not decided, or the note is not ours."""
    try:
        note = read_json(run / NOTE)
        epoch = int(note["epochs"])
        return epoch if hmac.compare_digest(str(note["proof"]), proof_of(epoch, secret)) else None
    except UNREADABLE:
        return None


def proof_of(epoch: int, secret: str) -> str:
    return hmac.new(secret.encode(), str(epoch).encode(), "sha256").hexdigest()
