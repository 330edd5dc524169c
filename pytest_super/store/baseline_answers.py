"""The answers of a baseline's trials: an archive beside its file, from which later runs take them.

The trials of a task are numbered like its values in the baseline, as if they were epochs of one run.
"""

import json
import zipfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_super.errors import SuperError
from pytest_super.reading import read_bytes
from pytest_super.store.answers import BROKEN, FILE, AnswerStore
from pytest_super.store.atomic_write import replacing
from pytest_super.store.json_lines import disk_errors
from pytest_super.store.results import folder_name
from pytest_super.store.run_folder import last_results, trials_by_task

PACKED = zipfile.ZIP_DEFLATED


def archive_of(baseline: Path) -> Path:
    return baseline.with_suffix(".answers.zip")


def write_answers(
    baseline: Path, first_run: str, run: Path, after: Mapping[str, int], without: Collection[str] = ()
) -> int:
    """Write the answers of a run's trials. Returns how many trials have some. Raises SuperError.

    `first_run` is the id of the baseline's first one, by which candidates are paired. `after` has the tasks,
    and how many values of each it had before. `without` are the runs whose trials it has already; empty for
    a new baseline, whose archive is written anew.
    """
    archive, known = archive_of(baseline), AnswerStore(run).facts()
    name = str(known["id"])
    own = [one for one in last_results(run) if (one.resumed_from or name) not in without]
    trials = trials_by_task(name, own)
    facts = {"id": first_run, "model": known.get("model"), "answers": known.get("answers")}
    written = 0
    with disk_errors(archive), replacing(archive) as draft, zipfile.ZipFile(draft, "w", PACKED) as file:
        if without:
            copy_trials(archive, file)
        for id, number in after.items():
            for place, one in enumerate(trials[id], number + 1):
                with suppress(FileNotFoundError):
                    file.writestr(f"trials/{id}/{place}.0/{FILE}", read_bytes(run / folder_name(one) / FILE))
                    written += 1
        file.writestr("run.json", json.dumps(facts))
    return written


def copy_trials(archive: Path, file: zipfile.ZipFile) -> None:
    """Copy the trials of an archive, if there is one."""
    if not archive.exists():
        return
    try:
        with zipfile.ZipFile(archive) as old:
            for name in old.namelist():
                if name.startswith("trials/"):
                    file.writestr(name, old.read(name))
    except BROKEN as error:
        raise SuperError(
            f"{archive} is damaged ({error}): remove it, or write the baseline anew with --with-answers"
        ) from None
