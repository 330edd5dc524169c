"""The page of a run as one file, which needs nothing else: `--super-html`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_super.report.page.render import run_page, trial_body
from pytest_super.report.page.stored import ShownRun, ShownTrial, read_run
from pytest_super.report.page.trial import TRAJECTORY, detail_of
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_OF_TRIAL = 200_000
"""Bytes of the page for one trial."""
MOST_OF_ALL = 10_000_000
"""Bytes of the page for all of them: a browser opens this many in less than two seconds."""
# A trial that gets less is left out: it would not be worth reading.
LEAST_OF_TRIAL = 20_000


def write_page(path: Path, folder: Path) -> None:
    """Write the page of the run in `folder`. Raises InfrastructureError if the disk refuses."""
    page = one_file(read_run(folder), os.path.relpath(folder, path.parent))
    # A link stays, and leads to the page.
    target = Path(os.path.realpath(path))
    with disk_errors(path, "--super-html"):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, page)


def one_file(run: ShownRun, way: str) -> str:
    """`way` is the path from the page's folder to that of the run, for links to its files."""
    details = list(details_of(run, way))
    ids = {trial.folder: id for id, trial, _ in details}
    links = [f"#{ids[one.folder]}" if one.folder in ids else "" for one in run.trials]
    return run_page(run, links, details=details)


def details_of(run: ShownRun, way: str) -> Iterator[tuple[str, ShownTrial, Markup]]:
    """The detail of as many trials as fit, each with its id in the page."""
    chosen = run.trials[: MOST_OF_ALL // LEAST_OF_TRIAL]
    most = min(MOST_OF_TRIAL, MOST_OF_ALL // max(len(chosen), 1))
    for number, trial in enumerate(chosen):
        id = f"t{number}"
        view = detail_of(trial, run.folder, most)
        source = quote(f"{way}/{trial.folder}/{TRAJECTORY}")
        yield id, trial, trial_body(view, id=id, level=4, source=source)
