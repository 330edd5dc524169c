"""The formats of exports by their names, and the file or folder that one of them is written to."""

import csv
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.report.export.atif import write_atif
from pytest_super.report.export.inspect_log import write_inspect
from pytest_super.report.export.trials import StoredTrials, read_trials
from pytest_super.report.summary import metric_names
from pytest_super.store.answers import FILE, read_answers
from pytest_super.store.atomic_write import replacing
from pytest_super.store.json_lines import disk_errors, to_line
from pytest_super.store.results import folder_name, stored_fields


def write_calls(trials: StoredTrials, path: Path) -> None:
    """One JSON line for each call of a model: what was asked, and what the model said."""
    with path.open("w", encoding="utf-8") as file:
        for result in trials.results:
            try:
                answers = read_answers(trials.run.folder / folder_name(result) / FILE)
            except SuperError as error:
                trials.unread.append(str(error))
                continue
            for call in answers.calls.values():
                trial = {"id": result.id, "epoch": result.epoch, "call": call.number}
                file.write(to_line({**trial, "request": answers.asked(call.number), **call.end}))


def write_csv(trials: StoredTrials, path: Path) -> None:
    """One row for each trial; the columns are the same for all runs, but for the metrics."""
    fields = [one.name for one in stored_fields() if one.kind not in (list, dict)]
    metrics = metric_names(trials.results)
    with path.open("w", encoding="utf-8", newline="") as file:
        # With the ends of lines of RFC 4180: with others, some versions do not quote a carriage return.
        writer = csv.writer(file)
        writer.writerow(["run", *fields, *(f"metric_{name}" for name in metrics)])
        for result in trials.results:
            known = result.to_known_data()
            values = [*(known[name] for name in fields), *map(result.metrics.get, metrics)]
            writer.writerow([trials.run.name, *map(cell, values)])


def cell(value: Any) -> Any:
    """True and false as in JSON, which more tools read than Python's."""
    return str(value).lower() if isinstance(value, bool) else value


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


Writer = Callable[[StoredTrials, Path], None]
# How each format is written, the end of its name, and whether it is a file or a folder.
FORMATS: dict[str, tuple[Writer, str, Callable[[Path], AbstractContextManager[Path]]]] = {
    "inspect": (write_inspect, ".eval", new_file),
    "atif": (write_atif, ".atif", new_folder),
    "csv": (write_csv, ".csv", new_file),
    "calls": (write_calls, ".calls.jsonl", new_file),
}


def export_run(folder: Path, name: str, output: Path | None) -> tuple[Path, StoredTrials]:
    """Write the run in `folder` in the format of this name. Returns where, and what. Raises SuperError."""
    write, suffix, new = FORMATS[name]
    path = output or Path(f"{folder.name}{suffix}")
    trials = read_trials(folder)
    with disk_errors(path, "--output"), new(path) as draft:
        write(trials, draft)
    return path, trials
