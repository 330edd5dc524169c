"""The live display of a run: which trials run, and the hooks in which pytest is about to write."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import ExitStack
from time import monotonic, time
from typing import Any

import pytest

from pytest_super.report.live import LiveDisplay, Progress, activity_lines, fitted, own_descriptor, style_of
from pytest_super.session.controller.controller import Controller
from pytest_super.session.trial.reported_outcome import CRASH_PHASE, REQUEUED, is_task, trial_of
from pytest_super.store.activity import Doing, newest_doing
from pytest_super.store.results import TrialResult
from pytest_super.store.run_folder import last_reruns

# Values of --capture by which the output of tests goes to the terminal.
WRITTEN_BY_TESTS = ("no", "tee-sys")


class LiveRun:
    """Runs on the controller, with and without xdist, from the first trial until the summary."""

    def __init__(self, config: pytest.Config, controller: Controller) -> None:
        self.config = config
        self.controller = controller
        self.running: set[str] = set()
        """Names of trials."""
        self.began = self.last_end = monotonic()
        self.display: LiveDisplay | None = None
        self.open_display = ExitStack()

    def open(self) -> None:
        """Begin only with a trial, because a thread would be noticed by tests that fork."""
        if self.display is not None or not self.config.pluginmanager.has_plugin("terminalreporter"):
            return
        descriptor = own_descriptor(sys.stdout, self.open_display)
        if descriptor is None:
            return
        writer = self.config.get_terminal_writer()
        self.display = LiveDisplay(
            self.lines,
            descriptor,
            style_of(descriptor, is_shared=self.config.option.capture in WRITTEN_BY_TESTS),
            column=lambda: writer.width_of_current_line,
        )
        self.open_display.enter_context(self.display)

    # First, because the hook ends with the plugin that runs the tests.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        self.began = self.last_end = monotonic()

    def lines(self, width: int) -> list[str]:
        """Called in the display's thread."""
        folder = self.controller.folder
        if folder is None:
            return []
        doings = {name: newest_doing(folder.path, name) for name in list(self.running)}
        known = {name: doing for name, doing in doings.items() if doing is not None}
        progress = self.progress(list(folder.results.values()), known.values())
        return [fitted(str(progress), width), *activity_lines(known, time(), width)]

    def progress(self, runs: list[TrialResult], doings: Iterable[Doing]) -> Progress:
        results = last_reruns(runs)
        costs = [run.cost_usd for run in runs] + [doing.cost_usd for doing in doings]
        known = [cost for cost in costs if cost is not None]
        return Progress(
            all=len(self.controller.trials.selected),
            done=len(self.controller.trials.ended),
            running=len(self.running),
            solved=sum(result.solved for result in results),
            errors=sum(result.is_error for result in results),
            tokens=sum(run.tokens for run in runs) + sum(doing.tokens for doing in doings),
            cost_usd=sum(known) if known else None,
            seconds=monotonic() - self.began,
            seconds_of_done=self.last_end - self.began,
        )

    # The following hooks are the first, because pytest's own write.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.touch()
        if is_task(nodeid):
            self.running.add(trial_of(nodeid))
            self.open()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        self.touch()
        # For an item whose worker died, also after its trial, there is no `logfinish`.
        if report.when in (CRASH_PHASE, "teardown") and is_task(report.nodeid):
            self.end_trial(report.nodeid, is_requeued=report.outcome == REQUEUED)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.touch()
        if is_task(nodeid):
            self.end_trial(nodeid)

    def end_trial(self, nodeid: str, *, is_requeued: bool = False) -> None:
        self.running.discard(trial_of(nodeid))
        if not is_requeued:
            self.last_end = monotonic()

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_testnodedown(self) -> None:
        self.touch()

    pytest_warning_recorded = pytest_internalerror = pytest_testnodedown

    def pytest_enter_pdb(self) -> None:
        """A person works in the debugger, until the next trial begins."""
        self.close()

    # Inside the terminal's own wrapper, which prints the summary.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        try:
            return (yield)
        finally:
            self.close()

    def touch(self) -> None:
        if self.display is not None:
            self.display.touch()

    def close(self) -> None:
        self.display = None
        self.open_display.close()
