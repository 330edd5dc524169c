"""Writes the files of an import and a record of them; never overwrites the changes of a person."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.store.atomic_write import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_files(
    folder: Path, files: Mapping[str, str], origin: Mapping[str, Any], *, force: bool
) -> Counter[str]:
    """Write these files (name: text) to the folder, and remove other files of earlier imports of the set.

    Returns how many files are new, changed, removed. The record of an import has `origin` and the files with
    their digests. Raises SuperError, before anything is written, if a file would change that does not have
    its recorded content; `force` overwrites it.
    """
    record = folder / f"super-{origin['set']}.import.json"
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
    """The files of the last import into this folder: name and digest. Raises SuperError."""
    try:
        files: Any = json.loads(read(path) or b"{}").get("files", {})
        # Only plain names, so that nothing outside of the folder is removed.
        return {name: str(files[name]) for name in files if "/" not in name and name.endswith(".task.yaml")}
    except (ValueError, AttributeError, TypeError):
        raise SuperError(
            f"{path}: this is not the record of an import: remove it, and import with --force"
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
            f"{folder}: {named} changed since the last import, so nothing was written; --force overwrites"
        )


def replace_files(folder: Path, there: Mapping[str, bytes], wanted: Mapping[str, bytes]) -> Counter[str]:
    done: Counter[str] = Counter()
    for name, data in wanted.items():
        if there.get(name) != data:
            write_atomically(folder / name, data)
            done["changed" if name in there else "new"] += 1
    for name in there.keys() - wanted.keys():
        (folder / name).unlink()
        done["removed"] += 1
    return done


def record_text(origin: Mapping[str, Any], wanted: Mapping[str, bytes]) -> str:
    """Without a time, so that the same import makes the same bytes."""
    data = {**origin, "files": {name: digest(wanted[name]) for name in sorted(wanted)}}
    return json.dumps(data, indent=2) + "\n"
