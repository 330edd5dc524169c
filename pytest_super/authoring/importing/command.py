"""Imports one set of SUPER: reads its rows, makes valid task files of them, and writes these."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from pytest_super.authoring.importing.hub import fetch
from pytest_super.authoring.importing.store import digest, write_files
from pytest_super.authoring.importing.super import COLUMNS, DATASET, FILES, task_fields
from pytest_super.authoring.rows import Row, read_rows
from pytest_super.authoring.task_text import task_text
from pytest_super.errors import SuperError
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.words import one_line


def import_super(
    set_name: str, output: Path, *, revision: str, source: Path | None, image: str | None, force: bool
) -> int:
    """Write the set's task files to `output`, and a warning on standard error for each value that is changed.

    Returns the exit status, 1 if a row yields no task; the others are written. Raises SuperError when no file
    can be written.
    """
    name = FILES[set_name]
    path, commit = (local_file(name, source), None) if source else fetch(DATASET, name, revision)
    shown = name if commit else str(path)
    rows = read_rows(path, shown)
    require_columns(rows, set_name, shown)
    files = make_files(rows, set_name, shown, image)
    if not files:
        raise SuperError(f"{shown}: none of its {len(rows)} rows yields a task")
    origin = {
        "dataset": DATASET,
        "set": set_name,
        "file": name,
        "sha256": digest(path.read_bytes()),
        "revision": commit,
    }
    record = f"super-{set_name}.import.json"
    written = write_files(output, files, origin, record=record, force=force)
    left_out = len(rows) - len(files)
    lost = f"; {left_out} rows left out" if left_out else ""
    place = f"{DATASET} at {commit}" if commit else shown
    changes = ", ".join(f"{count} {word}" for word, count in written.items()) or "nothing changed"
    print(f"{len(files)} tasks in {output} ({changes}){lost}, from {place}")
    return 1 if left_out else 0


def local_file(name: str, source: Path) -> Path:
    """The file itself, or the set's file in a folder with the layout of the data set. Raises SuperError."""
    if not source.is_dir():
        return source
    places = [source / name, source / Path(name).name]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise SuperError(f"{source}: there is no {name}, nor {Path(name).name}")
    return found


def require_columns(rows: list[Row], set_name: str, shown: str) -> None:
    if not rows:
        raise SuperError(f"{shown}: the file has no row")
    columns = {name for row in rows for name in row.fields}
    missing = [name for name in COLUMNS[set_name] if name not in columns]
    if missing:
        raise SuperError(
            f"{shown}: no row has {' or '.join(f'`{name}`' for name in missing)}: "
            f"not the file of the set {set_name} (its columns are {', '.join(sorted(columns))})"
        )


def make_files(rows: list[Row], set_name: str, shown: str, image: str | None) -> dict[str, str]:
    """The text of each task file, by name. Warns of each row that yields none."""
    files: dict[str, str] = {}
    bare: list[str] = []
    for row in rows:
        warn = partial(print_warning, f"{shown}:row {row.number} ({row.fields.get('task_id')}):")
        try:
            fields = task_fields(row.fields, set_name, image=image, warn=warn)
            name = f"{fields['id']}{TASK_SUFFIX}"
            if name in files:
                raise ValueError(f"an earlier row has the id {fields['id']}")
            files[name] = task_text(fields, Path(name))
            if "/" not in fields.get("entrypoint", {}).get("path", "/"):
                bare.append(f"{fields['entrypoint']['path']} of {fields['id']}")
        except ValueError as error:
            warn(f"left out: {error}")
    if bare:
        print_warning(
            f"{shown}:",
            f"entrypoints without a folder: {len(bare)}, such as {bare[0]}. Such a name is the file at the "
            "top of the repository, or else its only file of that name: add the folder if there are several",
        )
    return files


def print_warning(place: str, message: str) -> None:
    print(one_line(f"{place} {message}"), file=sys.stderr)
