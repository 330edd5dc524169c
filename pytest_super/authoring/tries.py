"""Runs of pytest by commands: of gold, and with a plugin that makes their agents from a command's data."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from pytest_super.errors import SuperError
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors
from pytest_super.store.run_folder import last_results

VARIABLE = "SUPER_TRIES"
"""Names a JSON file with what is tried of each task by its id, that of epoch 1 first."""
# Ini values that would leave tasks out, or decide something by such a run.
UNSET = (
    *("set", "category", "split", "n", "sample", "temperature"),
    *("baseline", "fail_under", "must_solve", "cannot_tell", "resume"),
)
OWN_SETTINGS = tuple(f"-osuper_{name}=" for name in UNSET)
# Exit statuses of pytest when all tests were run, whether or not they passed.
DONE = (0, 1)


def run_tries(
    plugin: str, arguments: Sequence[str], tries: Mapping[str, Sequence[Any]], folder: Path
) -> Path:
    """The folder of the run, which has an epoch for each try. Raises SuperError if not all were run."""
    data = folder / "tries.json"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(data, json.dumps(tries))
    # Of tasks with fewer tries, further epochs are skipped.
    epochs = f"--super-epochs={max(map(len, tries.values()))}"
    run = run_pytest([f"-p{plugin}", epochs, *arguments], folder, {VARIABLE: str(data.absolute())})
    done, wanted = len(last_results(run)), sum(map(len, tries.values()))
    if done != wanted:
        raise SuperError(f"pytest ended after {done} of {wanted} tries: see {folder / 'pytest.log'}")
    return run


def run_pytest(arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Path:
    """The folder of the run, below `folder`, as is its log. Raises SuperError if it ends before all tests."""
    log = folder / "pytest.log"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            status = await_pytest([*OWN_SETTINGS, "--maxfail=0", *arguments], folder, environment, output)
    if status not in DONE:
        raise SuperError(f"pytest ended with status {status} before everything was tried: see {log}")
    return (folder / "runs/latest").resolve()


def await_pytest(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    output: BinaryIO | None = None,
) -> int:
    """The exit status of pytest, which stores its run in `folder` and prints to `output`, else as we do."""
    # It ends pytest when this process is killed.
    command = [sys.executable, "-m", "pytest", "-ppytest_super.session.workers.end_with_parent"]
    with subprocess.Popen(
        [*command, f"--super-dir={folder.absolute()}", *arguments],
        env={**os.environ, **(environment or {})},
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
    ) as process:
        # Ctrl-C reaches pytest, too, which then stores its results.
        while True:
            with suppress(KeyboardInterrupt):
                return process.wait()


@cache
def all_tries(file: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(Path(file).read_text(encoding="utf-8"))
    return found


def try_of(id: str, epoch: int) -> Any:
    """Tell a plugin what is tried in this epoch of a task; None if nothing is."""
    tries = all_tries(os.environ[VARIABLE])[id]
    return tries[epoch - 1] if epoch <= len(tries) else None
