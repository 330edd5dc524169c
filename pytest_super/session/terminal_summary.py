"""The summary of a run in the terminal, and its verdict in the last lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_super.errors import SuperError
from pytest_super.gate.verdict import RunVerdict
from pytest_super.report.table import WIDTH
from pytest_super.report.terminal import summary_lines, trouble_lines, write_lines
from pytest_super.session.controller.controller import Controller
from pytest_super.session.settings import Settings
from pytest_super.session.start.resume import line_to_go_on
from pytest_super.session.start.selection import keyword_hints
from pytest_super.session.trial.scoring import SCORING
from pytest_super.session.workers.workers import Workers
from pytest_super.store.run_folder import RunFolder
from pytest_super.words import one_line, words_of


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
        lines = [*self.result_lines(folder), *map(one_line, dict.fromkeys(self.controller.trouble))]
        if not lines:
            return []
        verdict = self.controller.verdict
        if verdict is not None and self.controller.gates.baseline is not None:
            lines += ["", *comparison_of(verdict)]
        lines += answer_lines(self.controller.run.settings, folder)
        hints = keyword_hints(self.config.option.keyword, [one.category for one in folder.final()])
        lines += [*hints, f"results: {folder.path}"]
        # A trial was stopped or has not begun.
        results = folder.final()
        if any(one.is_interrupted for one in results) or self.controller.trials.not_run(results) > 0:
            lines.append(line_to_go_on(self.config, self.controller.run))
        return lines

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


def answer_lines(settings: Settings, folder: RunFolder) -> Iterator[str]:
    """How far a run with recorded answers asked what was recorded, or replayed it."""
    if settings.forked_from:
        from pytest_super.session.trial.fork_check import fork_lines

        yield from fork_lines(settings.forked_from, folder.final())
    elif settings.answers:
        # Not at the top: most runs have none.
        from pytest_super.report.missed import missed_lines

        try:
            yield from missed_lines(folder.path, folder.final(), settings.answers_of)
        except SuperError as error:
            yield one_line(words_of(error))


def comparison_of(verdict: RunVerdict) -> Iterator[str]:
    """Empty if trials are missing."""
    if verdict.comparison is not None:
        from pytest_super.report.comparison import comparison_lines

        yield from comparison_lines(verdict.comparison)
    elif verdict.baseline.why_not_compared:
        yield verdict.baseline.why_not_compared
