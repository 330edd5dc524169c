"""The import of one set of SUPER: read its rows, make valid task files of them, and write these."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.importing.hub import fetch
from pytest_super.authoring.importing.rows import NoTaskError, Row, Warn, read_rows, without_surrogates
from pytest_super.authoring.importing.store import Origin, Written, digest, write_files
from pytest_super.authoring.importing.super import COLUMNS, DATASET, EXPERT_IDS, FILES, task_fields
from pytest_super.errors import SuperError, TaskFileError
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.tasks.yaml_writer import to_yaml

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True, kw_only=True)
class Source:
    """A set's file on this machine, its name in messages, and the known ids of expert tasks."""

    path: Path
    shown: str
    revision: str | None
    expert_ids: Collection[str]


@dataclass
class Made:
    """The task files by name, and how many rows yield none."""

    files: dict[str, str] = field(default_factory=dict)
    failed: int = 0


def import_super(
    set_name: str, output: Path, *, revision: str, source: Path | None, image: str | None, force: bool
) -> int:
    """Write the set's task files to `output`, and a warning on standard error for each value that is changed.

    Returns the exit status, 1 if a row yields no task; the others are written. Raises SuperError when no file
    can be written.
    """
    found = local_source(set_name, source) if source else hub_source(set_name, revision)
    rows = read_rows(found.path, found.shown)
    require_columns(rows, set_name, found.shown)
    made = make_files(rows, set_name, found, image)
    if not made.files:
        raise SuperError(f"{found.shown}: none of its {len(rows)} rows yields a task")
    origin = Origin(
        dataset=DATASET,
        set=set_name,
        file=FILES[set_name],
        sha256=digest(found.path.read_bytes()),
        revision=found.revision,
    )
    written = write_files(output, made.files, origin, force=force)
    print(summary(output, made, written, found))
    return 1 if made.failed else 0


def hub_source(set_name: str, revision: str) -> Source:
    path, commit = fetch(DATASET, FILES[set_name], revision)
    expert_ids = set(EXPERT_IDS)
    if set_name == "masked":
        # From the same commit, even if the branch has moved.
        expert, _ = fetch(DATASET, FILES["expert"], commit)
        expert_ids |= ids_in(expert, FILES["expert"])
    return Source(path=path, shown=FILES[set_name], revision=commit, expert_ids=expert_ids)


def local_source(set_name: str, source: Path) -> Source:
    path = local_file(set_name, source)
    expert = path.with_name(Path(FILES["expert"]).name)
    needs_ids = set_name == "masked" and expert.is_file() and expert != path
    ids = {*EXPERT_IDS, *ids_in(expert, str(expert))} if needs_ids else EXPERT_IDS
    return Source(path=path, shown=str(path), revision=None, expert_ids=ids)


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


def ids_in(path: Path, shown: str) -> set[str]:
    return {
        row.fields["task_id"] for row in read_rows(path, shown) if isinstance(row.fields.get("task_id"), str)
    }


def require_columns(rows: list[Row], set_name: str, shown: str) -> None:
    columns = {name for row in rows for name in row.fields}
    missing = [name for name in COLUMNS[set_name] if name not in columns]
    if missing:
        raise SuperError(
            f"{shown}: no row has {' or '.join(f'`{name}`' for name in missing)}: "
            f"not the file of the set {set_name} (its columns are {', '.join(sorted(columns))})"
        )


def make_files(rows: list[Row], set_name: str, source: Source, image: str | None) -> Made:
    made = Made()
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            warn = partial(tell, f"{source.shown}:row {row.number} ({row.fields.get('task_id')}):")
            try:
                fields = task_fields(
                    legible(row, warn), set_name, expert_ids=source.expert_ids, image=image, warn=warn
                )
                name = f"{fields['id']}{TASK_SUFFIX}"
                if name in made.files:
                    raise NoTaskError(f"an earlier row has the id {fields['id']}")
                made.files[name] = validated(fields, Path(folder, name))
            except NoTaskError as error:
                made.failed += 1
                warn(f"left out: {error}")
    return made


def legible(row: Row, warn: Warn) -> Row:
    try:
        fields = without_surrogates(row.fields)
    except RecursionError:
        raise NoTaskError("nested too deeply") from None
    if fields != row.fields:
        warn("lone surrogates become U+FFFD")
    return Row(row.number, fields)


def validated(fields: dict[str, Any], path: Path) -> str:
    """The text of the file, accepted by the loader. Raises NoTaskError."""
    try:
        text = to_yaml(fields)
        path.write_text(text, encoding="utf-8", newline="")
        load_tasks(path, shown=path.name)
    except RecursionError:
        raise NoTaskError("nested too deeply") from None
    except OSError as error:
        raise NoTaskError(f"cannot be written: {error.strerror}") from None
    except TaskFileError as error:
        # Without line and column, which are those of a file that is not kept.
        messages = [line.split(": ", 1)[-1] for line in str(error).splitlines()]
        raise NoTaskError("; ".join(messages)) from None
    return text


def tell(place: str, message: str) -> None:
    """Print one line, whatever characters a row has."""
    line = f"{place} {message}"
    print("".join(c if c.isprintable() else repr(c)[1:-1] for c in line), file=sys.stderr)


def summary(output: Path, made: Made, written: Written, source: Source) -> str:
    counts = [
        f"{len(names)} {word}"
        for word, names in (("new", written.new), ("changed", written.changed), ("removed", written.removed))
        if names
    ]
    lost = f"; {made.failed} rows left out" if made.failed else ""
    origin = f"{DATASET} at {source.revision}" if source.revision else source.shown
    return (
        f"{len(made.files)} tasks in {output} ({', '.join(counts) or 'nothing changed'}){lost}, from {origin}"
    )
