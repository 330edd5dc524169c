"""Writes a run that was scored again beside the one that it was made of, which stays as it is."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.report.notebook import write_notebook
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, append, disk_errors, to_line
from pytest_super.store.results import FORMAT, folder_name
from pytest_super.store.run_folder import new_run_id, take_trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_super.authoring.rescore.results import NewResult

Facts = dict[str, Any]


def read_facts(run: Path) -> Facts:
    """The content of a run's run.json. Raises SuperError."""
    try:
        facts: Facts = dict(json.loads((run / "run.json").read_text(encoding="utf-8")))
        if facts["format"] != FORMAT:
            raise SuperError(f"{run}: the format of the run is {facts['format']}, not {FORMAT}")
    except FileNotFoundError:
        raise SuperError(f"there is no run in {run}: --write needs the folder of one run") from None
    except UNREADABLE as error:
        raise SuperError(f"{run}: its run.json cannot be read: {error!r}") from None
    return facts


def write_run(run: Path, facts: Facts, results: Sequence[NewResult], arguments: Sequence[str]) -> Path:
    """The folder of the new run. Raises InfrastructureError, and then leaves nothing behind.

    `latest` stays: it is the newest run that has run something. `arguments` are those of the command line.
    """
    id = new_run_id()
    new, draft = run.parent / id, run.parent / f".{id}"
    facts = {
        **facts,
        "id": id,
        "rescored": run.name,
        "arguments": list(arguments),
        "versions": {**facts.get("versions", {}), "pytest-super": version("pytest-super")},
    }
    try:
        with disk_errors(run.parent):
            for one in results:
                write_trial(run, draft, one)
            append(draft / "results.jsonl", "".join(to_line(one.new.to_data()) for one in results))
            write_atomically(draft / "run.json", json.dumps(facts, indent=1) + "\n")
            # A rename, so that nobody ever sees a part of the run.
            draft.rename(new)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return new


def write_trial(run: Path, draft: Path, one: NewResult) -> None:
    """Raises OSError and InfrastructureError."""
    folder = take_trial(run / folder_name(one.old), draft, one.new)
    if one.rescored is None or one.rescored.scored is None:
        return
    task, _ = one.rescored.scored
    write_notebook(folder, task, one.new, one.rescored.trial.steps)
    for name, log in (one.rescored.regraded.logs if one.rescored.regraded else {}).items():
        write_atomically(folder / name, log)
