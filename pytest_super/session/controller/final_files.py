"""What a run writes at its end: its page, its verdict, and the summary of a job of GitHub."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.store.json_lines import append, disk_errors
from pytest_super.store.verdict import write_verdict

if TYPE_CHECKING:
    from pytest_super.gate.verdict import RunVerdict
    from pytest_super.session.run import Run


def reports_of(run: Run, folder: Path, verdict: RunVerdict) -> Iterator[Callable[[], None]]:
    """Each writes one report. They raise InfrastructureError."""
    # Before the page, which shows it.
    if verdict.gates:
        yield partial(write_verdict, folder, verdict.to_data())
    if run.settings.html is not None:
        from pytest_super.report.page.render import write_page

        yield partial(write_page, run.settings.html, folder)
    if run.settings.baseline is not None and (path := os.environ.get("GITHUB_STEP_SUMMARY")):
        yield partial(append_job_summary, Path(path), verdict)


def append_job_summary(path: Path, verdict: RunVerdict) -> None:
    """Append the comparison to the summary of a job of GitHub Actions. Raises InfrastructureError."""
    from pytest_super.report.comparison import markdown

    if verdict.comparison is not None:
        text = markdown(verdict.comparison)
    else:
        why_not = verdict.baseline.why_not_compared
        # The gate of the baseline is the last one.
        text = f"Agent: {why_not}" if why_not else verdict.gates[-1].lines[-1]
    with disk_errors(path):
        append(path, f"### {text}\n")
