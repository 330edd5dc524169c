"""The answers of a baseline's trials: an archive beside its file, from which later runs take them.

The trials of a task are numbered like its values in the baseline, as if they were epochs of one run.
"""

from __future__ import annotations

import json
import os
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_super.comparison.side import trials_by_task
from pytest_super.store.answers import FILE, AnswerStore
from pytest_super.store.atomic_write import replacing
from pytest_super.store.json_lines import disk_errors
from pytest_super.store.results import folder_name
from pytest_super.store.run_folder import last_results

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


PACKED = zipfile.ZIP_DEFLATED


def archive_of(baseline: Path) -> Path:
    return baseline.with_suffix(".answers.zip")


def write_answers(baseline: Path, run: Path, name: str, after: Mapping[str, int], *, is_added: bool) -> int:
    """Write the answers of a run's trials. Returns how many trials have some. Raises SuperError.

    `name` is the run's id. `after` has the tasks, and how many values of each the baseline had before.
    """
    archive, store = archive_of(baseline), AnswerStore(run)
    facts = {name: store.facts().get(name) for name in ("id", "model", "answers")}
    trials = trials_by_task(name, last_results(run))
    written = 0
    with disk_errors(archive), replacing(archive) as draft, zipfile.ZipFile(draft, "w", PACKED) as file:
        facts = (copied(archive, file) if is_added else {}) or facts
        for id, number in after.items():
            for place, one in enumerate(trials[id], number + 1):
                with suppress(FileNotFoundError):
                    file.write(run / folder_name(one) / FILE, f"trials/{id}/{place}.0/{FILE}")
                    written += 1
        file.writestr("run.json", json.dumps(facts))
    return written


def copied(archive: Path, file: zipfile.ZipFile) -> dict[str, str | None]:
    """Copy the trials of an archive. Returns its facts; empty if there is none."""
    if not os.path.exists(archive):
        return {}
    store = AnswerStore(archive)
    with zipfile.ZipFile(archive) as old:
        for name in old.namelist():
            if name.startswith("trials/"):
                file.writestr(name, old.read(name))
    return store.facts()
