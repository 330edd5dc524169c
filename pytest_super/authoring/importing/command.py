"""Imports one set of SUPER: fetches its rows, makes valid task files of them, and writes these."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pytest_super.authoring.importing.store import changes_of, write_files
from pytest_super.authoring.importing.super import COLUMNS, DATASET, FILES, task_fields
from pytest_super.authoring.rows import Row, read_rows
from pytest_super.authoring.task_text import task_text
from pytest_super.digests import digest, file_digest
from pytest_super.errors import SuperError
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.words import one_line


def import_super(
    set_name: str,
    output: Path,
    *,
    revision: str,
    source: Path | None,
    sandbox: Mapping[str, Any],
    force: bool,
) -> int:
    """Write the set's task files; the exit status is 1 if a row yields none. Raises SuperError."""
    name = FILES[set_name]
    path, commit = (source, None) if source else fetch(DATASET, name, revision)
    shown = name if commit else str(path)
    rows = read_rows(path, shown)
    require_columns(rows, set_name, shown)
    files = make_files(rows, set_name, shown, sandbox)
    if not files:
        raise SuperError(f"{shown}: none of its {len(rows)} rows yields a task")
    origin = {
        "dataset": DATASET,
        "set": set_name,
        "file": name,
        "sha256": file_digest(path),
        "revision": commit,
    }
    written = write_files(output, files, origin, record=f"super-{set_name}.import.json", force=force)
    left_out = len(rows) - len(files)
    lost = f"; {left_out} rows left out" if left_out else ""
    place = f"{DATASET} at {commit}" if commit else shown
    print(f"{len(files)} tasks in {output} ({changes_of(written)}){lost}, from {place}")
    return 1 if left_out else 0


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


def make_files(rows: list[Row], set_name: str, shown: str, sandbox: Mapping[str, Any]) -> dict[str, str]:
    """The text of each task file, by name. Warns of each row that yields none."""
    files: dict[str, str] = {}
    for row in rows:
        warn = partial(print_warning, f"{shown}:row {row.number} ({row.fields.get('task_id')}):")
        try:
            fields = task_fields(row.fields, set_name, sandbox=sandbox, warn=warn)
            if f"{fields['id']}{TASK_SUFFIX}" in files:
                own = f"{fields['id']}-{digest(row.fields)[:8]}"
                warn(f"an earlier row has the id {fields['id']}: the id becomes {own}, by the row's digest")
                metadata = {**fields.get("metadata", {}), "task_id": row.fields["task_id"]}
                fields |= {"id": own, "metadata": metadata}
            name = f"{fields['id']}{TASK_SUFFIX}"
            if name in files:
                raise ValueError("an earlier row is equal")
            files[name] = task_text(fields, Path(name))
        except ValueError as error:
            warn(f"left out: {error}")
    return files


def print_warning(place: str, message: str) -> None:
    print(one_line(f"{place} {message}"), file=sys.stderr)


def fetch(dataset: str, name: str, revision: str) -> tuple[Path, str]:
    """The file in the hub's cache on this machine, and the commit of the revision. Raises SuperError."""
    try:
        import huggingface_hub.utils
    except ImportError:
        raise SuperError(
            "the data set is downloaded by huggingface_hub, which is not installed: "
            "pip install 'pytest-super[super]', or use --from for files that you have"
        ) from None
    # Its types do not cover these functions.
    utils: Any = huggingface_hub.utils
    utils.disable_progress_bars()
    utils.logging.set_verbosity_error()
    try:
        path = huggingface_hub.hf_hub_download(dataset, name, repo_type="dataset", revision=revision)
    except Exception as error:
        # huggingface_hub uses requests or httpx, depending on its version, and passes on their errors.
        raise SuperError(f"{dataset}: {name} at {revision!r} was not downloaded: {reason(error)}") from error
    # The cache stores a file at `snapshots/<commit>/<name>`.
    file = Path(path)
    return file, file.parents[len(Path(name).parts) - 1].name


def reason(error: BaseException) -> str:
    """The reason in one line; the library's own message has several, with the id of a request."""
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError):
        below = error.__cause__ or error.__context__
        return "it cannot be downloaded and is not in the cache" + (
            f" ({first_line(below)})" if below else ""
        )
    known = {
        errors.RevisionNotFoundError: "the data set has no such revision",
        errors.GatedRepoError: "the data set asks for a login: set HF_TOKEN",
        errors.RepositoryNotFoundError: "there is no such data set, or it needs a login",
        errors.EntryNotFoundError: "the data set has no such file there",
    }
    return next((words for kind, words in known.items() if isinstance(error, kind)), first_line(error))


def first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
