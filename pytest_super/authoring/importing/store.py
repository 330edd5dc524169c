"""Writes the files of an import and a record of them; never overwrites the changes of a person."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_super.digests import file_digest
from pytest_super.errors import SuperError
from pytest_super.store.atomic_write import copy_atomically, write_atomically
from pytest_super.tasks.fields import check_relative
from pytest_super.words import named


def write_files(
    folder: Path, files: Mapping[str, str | Path], origin: Mapping[str, Any], *, record: str, force: bool
) -> Counter[str]:
    """Write texts and copies, remove what only earlier imports wrote, and count both. Raises SuperError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        earlier = read_record(folder / record)
        wanted = {name: digest_of(content) for name, content in files.items()}
        names = {*wanted, *earlier}
        there = {name: file_digest(folder / name) for name in names if (folder / name).exists()}
        if not force:
            refuse_changed(folder, earlier, there, wanted)
        written = replace_files(folder, there, wanted, files)
        # Without a time, so that the same import makes the same bytes.
        data = {**origin, "files": dict(sorted(wanted.items()))}
        write_atomically(folder / record, json.dumps(data, indent=2) + "\n")
    except OSError as error:
        raise SuperError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    return written


def digest_of(content: str | Path) -> str:
    if isinstance(content, str):
        return hashlib.sha256(content.encode()).hexdigest()
    try:
        return file_digest(content)
    except OSError as error:
        raise SuperError(f"{content}: cannot be read: {error.strerror}") from None


def read_record(path: Path) -> dict[str, str]:
    """The files of the last import into this folder: name and digest. Raises SuperError."""
    if not path.exists():
        return {}
    try:
        files: Any = json.loads(path.read_bytes()).get("files", {})
        # Only paths inside, so that nothing outside of the folder is removed.
        return {check_relative(name): str(files[name]) for name in files}
    except (ValueError, AttributeError, TypeError):
        raise SuperError(
            f"{path}: this is not the record of an import: remove it, and import with --force"
        ) from None


def refuse_changed(
    folder: Path, earlier: Mapping[str, str], there: Mapping[str, str], wanted: Mapping[str, str]
) -> None:
    changed = sorted(
        name for name, found in there.items() if found not in (wanted.get(name), earlier.get(name))
    )
    if changed:
        raise SuperError(
            f"{folder}: {named(changed, 3)} changed since the last import and was left as it is; "
            "--force overwrites it"
        )


def replace_files(
    folder: Path, there: Mapping[str, str], wanted: Mapping[str, str], files: Mapping[str, str | Path]
) -> Counter[str]:
    done: Counter[str] = Counter()
    for name, wanted_digest in wanted.items():
        if there.get(name) != wanted_digest:
            path, content = folder / name, files[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                copy_atomically(content, path)
            else:
                write_atomically(path, content)
            done["changed" if name in there else "new"] += 1
    for name in there.keys() - wanted.keys():
        (folder / name).unlink()
        done["removed"] += 1
    return done


def changes_of(written: Counter[str]) -> str:
    """What `write_files` has done, for a person."""
    return ", ".join(f"{count} {word}" for word, count in written.items()) or "nothing changed"
