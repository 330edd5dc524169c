"""What a run shows and writes at its end: summary, verdict, its page, and the summary of a job of GitHub."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_super.errors import SuperError
from pytest_super.report.table import WIDTH
from pytest_super.report.terminal import summary_lines, trouble_lines, write_lines
from pytest_super.session.resume import line_to_go_on
from pytest_super.session.scoring import SCORING
from pytest_super.session.selection import keyword_hints
from pytest_super.store.json_lines import append, disk_errors
from pytest_super.words import one_line, words_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pytest_super.gates.verdict import RunVerdict
    from pytest_super.session.controller import Controller
    from pytest_super.session.workers import Workers
    from pytest_super.store.run_folder import RunFolder


class TerminalSummary:
    """Registered on the controller."""

    def __init__(self, controller: Controller, workers: Workers) -> None:
        self.config = controller.config
        self.controller = controller
        self.workers = workers

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folder = self.controller.folder
        lines = [*(self.run_lines(folder) if folder else []), *self.workers.hints]
        if folder is not None and self.controller.early_end is not None:
            lines += self.controller.early_end.lines(folder)
        if lines:
            terminalreporter.section("super")
        write_lines(terminalreporter, lines)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Write the verdict as the last lines, after those that pytest writes at the end of the session."""
        terminalreporter = config.pluginmanager.get_plugin("terminalreporter")
        if terminalreporter is not None and self.controller.verdict is not None:
            write_lines(terminalreporter, self.controller.verdict.lines)

    def run_lines(self, folder: RunFolder) -> list[str]:
        """Empty if no trial began and nothing failed."""
        # Each trouble once, because on a full disk every trial has the same.
        troubles = map(one_line, dict.fromkeys(self.controller.trouble))
        lines = [*self.result_lines(folder), *troubles]
        if not lines:
            return []
        verdict = self.controller.verdict
        if verdict is not None and self.controller.gates.baseline is not None:
            lines += ["", *comparison_of(verdict)]
        categories = [result.category for result in folder.final()]
        hints = keyword_hints(self.config.option.keyword, categories)
        lines += [*hints, f"results: {folder.path}"]
        if self.is_unfinished(folder):
            lines.append(line_to_go_on(self.config, self.controller.run))
        return lines

    def is_unfinished(self, folder: RunFolder) -> bool:
        """Whether a trial was stopped or has not begun."""
        results = folder.final()
        return any(one.is_interrupted for one in results) or self.controller.trials.not_run(results) > 0

    def result_lines(self, folder: RunFolder) -> Iterator[str]:
        trials = self.controller.trials
        if not (results := folder.final()):
            return trouble_lines(trials.afterwards)
        return summary_lines(
            results,
            self.config.stash[SCORING].metrics,
            list(folder.results.values()),
            trials.afterwards,
            trials.not_run(results),
            folder.path,
            max(WIDTH, self.config.get_terminal_writer().fullwidth),
            self.controller.chosen_epochs,
        )


def comparison_of(verdict: RunVerdict) -> Iterator[str]:
    """Empty if trials are missing."""
    if verdict.comparison is not None:
        from pytest_super.report.comparison import comparison_lines

        yield from comparison_lines(verdict.comparison)
    elif verdict.why_not_compared:
        yield verdict.why_not_compared


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
