"""Imports one set of SUPER: reads its rows, makes valid task files of them, and writes these."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pytest_super.authoring.importing.hub import fetch
from pytest_super.authoring.importing.refusal import NoTaskError
from pytest_super.authoring.importing.store import Written, digest, write_files
from pytest_super.authoring.importing.super import COLUMNS, DATASET, FILES, task_fields
from pytest_super.authoring.rows import Row, read_rows
from pytest_super.errors import SuperError, TaskFileError
from pytest_super.report.terminal import one_line
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.tasks.yaml_writer import to_yaml


class Source(NamedTuple):
    path: Path
    shown: str
    """Its name in messages."""
    revision: str | None
    """The commit of the data set; None for a local file."""


def import_super(
    set_name: str, output: Path, *, revision: str, source: Path | None, image: str | None, force: bool
) -> int:
    """Write the set's task files to `output`, and a warning on standard error for each value that is changed.

    Returns the exit status, 1 if a row yields no task; the others are written. Raises SuperError when no file
    can be written.
    """
    found = find_source(set_name, revision, source)
    rows = read_rows(found.path, found.shown)
    require_columns(rows, set_name, found.shown)
    files = make_files(rows, set_name, found.shown, image)
    if not files:
        raise SuperError(f"{found.shown}: none of its {len(rows)} rows yields a task")
    origin = {
        "dataset": DATASET,
        "set": set_name,
        "file": FILES[set_name],
        "sha256": digest(found.path.read_bytes()),
        "revision": found.revision,
    }
    written = write_files(output, files, origin, force=force)
    left_out = len(rows) - len(files)
    lost = f"; {left_out} rows left out" if left_out else ""
    place = f"{DATASET} at {found.revision}" if found.revision else found.shown
    print(f"{len(files)} tasks in {output} ({changes(written)}){lost}, from {place}")
    return 1 if left_out else 0


def find_source(set_name: str, revision: str, source: Path | None) -> Source:
    if source is None:
        path, commit = fetch(DATASET, FILES[set_name], revision)
        return Source(path, FILES[set_name], commit)
    path = local_file(set_name, source)
    return Source(path, str(path), None)


def local_file(set_name: str, source: Path) -> Path:
    """The file itself, or the set's file in a folder with the layout of the data set. Raises SuperError."""
    if not source.is_dir():
        return source
    name = FILES[set_name]
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
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            warn = partial(print_warning, f"{shown}:row {row.number} ({row.fields.get('task_id')}):")
            try:
                fields = task_fields(row.fields, set_name, image=image, warn=warn)
                name = f"{fields['id']}{TASK_SUFFIX}"
                if name in files:
                    raise NoTaskError(f"an earlier row has the id {fields['id']}")
                files[name] = validated(fields, Path(folder, name))
            except NoTaskError as error:
                warn(f"left out: {error}")
    return files


def validated(fields: dict[str, Any], path: Path) -> str:
    """The text of the file, accepted by the loader. Raises NoTaskError."""
    try:
        text = to_yaml(fields)
        path.write_text(text, encoding="utf-8", newline="")
        load_tasks(path, shown=path.name)
    except RecursionError:
        raise NoTaskError("nested too deeply") from None
    except ValueError as error:
        raise NoTaskError(str(error)) from None
    except TaskFileError as error:
        # Without line and column, which refer to a temporary file.
        messages = [line.split(": ", 1)[-1] for line in str(error).splitlines()]
        raise NoTaskError("; ".join(messages)) from None
    return text


def print_warning(place: str, message: str) -> None:
    print(one_line(f"{place} {message}"), file=sys.stderr)


def changes(written: Written) -> str:
    counts = [
        f"{len(names)} {word}"
        for word, names in (("new", written.new), ("changed", written.changed), ("removed", written.removed))
        if names
    ]
    return ", ".join(counts) or "nothing changed"
