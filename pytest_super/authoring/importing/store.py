"""The files of an import: written whole, recorded beside them, and never over what a person has changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.store.atomic_write import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where rows come from; equal rows make an equal record."""

    dataset: str
    set: str
    file: str
    """Its name in the data set."""
    sha256: str
    """Of its bytes."""
    revision: str | None
    """The commit of the data set; None for a file that was there."""


@dataclass(frozen=True)
class Written:
    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_files(folder: Path, files: Mapping[str, str], origin: Origin, *, force: bool = False) -> Written:
    """Make the folder hold these files (name: text), and no other of an earlier import of the set.

    The record of the import says which files it wrote, and what they held. Raises SuperError, before
    anything is written, where a file that is to change holds something else; `force` overwrites it.
    """
    record = folder / f"super-{origin.set}.import.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        earlier = read_record(record)
        wanted = {name: text.encode() for name, text in files.items()}
        there = {name: data for name in {*wanted, *earlier} if (data := read(folder / name)) is not None}
        if not force:
            refuse_changed(folder, earlier, there, wanted)
        written = replace_files(folder, there, wanted)
        write_atomically(record, record_text(origin, wanted))
    except OSError as error:
        raise SuperError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    return written


def read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def read_record(path: Path) -> dict[str, str]:
    """Names of the files of the last import here, and their digests."""
    try:
        files: Any = json.loads(read(path) or b"{}").get("files", {})
        # Nothing but names: what is removed lies in the folder.
        return {name: str(files[name]) for name in files if "/" not in name and name.endswith(".task.yaml")}
    except (ValueError, AttributeError, TypeError):
        raise SuperError(
            f"{path}: is not the record of an import: remove it, and import with --force"
        ) from None


def refuse_changed(
    folder: Path, earlier: Mapping[str, str], there: Mapping[str, bytes], wanted: Mapping[str, bytes]
) -> None:
    changed = sorted(
        name for name, data in there.items() if data != wanted.get(name) and digest(data) != earlier.get(name)
    )
    if changed:
        named = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
        raise SuperError(
            f"{folder}: {named}: not as an import left it, so nothing was written; --force overwrites"
        )


def replace_files(folder: Path, there: Mapping[str, bytes], wanted: Mapping[str, bytes]) -> Written:
    written = Written()
    for name, data in wanted.items():
        if there.get(name) != data:
            write_atomically(folder / name, data)
            (written.changed if name in there else written.new).append(name)
    for name in sorted(there.keys() - wanted.keys()):
        (folder / name).unlink()
        written.removed.append(name)
    return written


def record_text(origin: Origin, wanted: Mapping[str, bytes]) -> str:
    """Without a time: the same import makes the same bytes."""
    data = {
        "dataset": origin.dataset,
        "set": origin.set,
        "file": origin.file,
        "sha256": origin.sha256,
        "revision": origin.revision,
        "files": {name: digest(wanted[name]) for name in sorted(wanted)},
    }
    return json.dumps(data, indent=2) + "\n"
