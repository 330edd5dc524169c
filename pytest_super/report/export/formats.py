"""The formats of exports by their names, and the file or folder that one of them is written to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pytest_super.errors import SuperError
from pytest_super.report.export.atif import write_atif
from pytest_super.report.export.calls import write_calls
from pytest_super.report.export.inspect_log import write_inspect
from pytest_super.report.export.table import write_csv
from pytest_super.report.export.trials import StoredTrials, read_trials
from pytest_super.store.atomic_write import replacing
from pytest_super.store.json_lines import disk_errors


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a format is written, and the end of its file's name."""

    write: Callable[[StoredTrials, Path], None]
    suffix: str
    is_folder: bool = False


FORMATS = {
    "inspect": Format(write=write_inspect, suffix=".eval"),
    "atif": Format(write=write_atif, suffix=".atif", is_folder=True),
    "csv": Format(write=write_csv, suffix=".csv"),
    "calls": Format(write=write_calls, suffix=".calls.jsonl"),
}


def export_run(folder: Path, name: str, output: Path | None) -> tuple[Path, StoredTrials]:
    """Write the run in `folder` in the format of this name. Returns where, and what. Raises SuperError."""
    form = FORMATS[name]
    path = output or Path(f"{folder.name}{form.suffix}")
    trials = read_trials(folder)
    with disk_errors(path, "--output"), (new_folder if form.is_folder else new_file)(path) as draft:
        form.write(trials, draft)
    return path, trials


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write, which then takes the place of `path`."""
    # A link stays, and leads to the file.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise SuperError(f"--output: {path} is not a regular file: name another path")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as draft:
        yield draft


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into, which is then at `path`. Nothing in another folder is overwritten."""
    if os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir())):
        raise SuperError(f"--output: {path} is there already: name a new folder")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        yield draft
        draft.rename(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
