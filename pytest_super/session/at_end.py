"""What is written when a run has ended: the page of `--super-html`, and the summary of a job of GitHub."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_super.errors import SuperError
from pytest_super.store.json_lines import append, disk_errors
from pytest_super.words import words_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_super.gates.verdict import RunVerdict
    from pytest_super.session.controller import Controller


class PageAtEnd:
    """On the controller of a run with --super-html."""

    def __init__(self, folder: Path, page: Path) -> None:
        self._folder = folder
        self._page = page

    # A wrapper, so that a hook that raises keeps neither the page nor other hooks from their turn.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_super_run_finished(self) -> Generator[None]:
        """Raises InfrastructureError if the page cannot be written, beside what another hook raised."""
        try:
            yield
        except BaseException as error:
            self._write_after(error)
            raise
        self._write()

    def _write(self) -> None:
        from pytest_super.report.page.one_file import write_page

        write_page(self._page, self._folder)

    def _write_after(self, error: BaseException) -> None:
        try:
            self._write()
        except Exception as another:
            raise SuperError(f"{words_of(error)}; {words_of(another)}") from error


class JobSummary:
    """On the controller of a run with --super-baseline."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def pytest_super_run_finished(self) -> None:
        """Append the comparison to the summary of a job of GitHub Actions. Raises InfrastructureError."""
        path, verdict = os.environ.get("GITHUB_STEP_SUMMARY"), self._controller.verdict
        if path and verdict is not None:
            with disk_errors(Path(path)):
                append(Path(path), f"### {job_summary(verdict)}\n")


def job_summary(verdict: RunVerdict) -> str:
    from pytest_super.report.step_summary import markdown

    if verdict.comparison is not None:
        return markdown(verdict.comparison)
    # The gate of the baseline is the last one.
    return f"Agent: {verdict.why_not_compared}" if verdict.why_not_compared else verdict.gates[-1].line
