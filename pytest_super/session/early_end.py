"""Ends a run with a range of epochs once its gates are decided: no further trial begins, none is stopped.

The gates are asked after each whole epoch. Asked earlier, they would see more of the trials that end soon.
"""

from __future__ import annotations

from contextlib import suppress
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import InfrastructureError
from pytest_super.session.outcome import CRASH_PHASE, REQUEUED, is_task, trial_of
from pytest_super.session.run import RUN
from pytest_super.store.decision import write_decided
from pytest_super.store.results import TrialResult, task_and_epoch
from pytest_super.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class EarlyEnd:
    """On the controller of a run with a range of epochs."""

    def __init__(
        self, config: pytest.Config, is_decided: Callable[[Sequence[TrialResult], Sequence[str], int], bool]
    ) -> None:
        """`is_decided` gets the results so far, the names of the trials to come, and the epoch that ended."""
        self._run = config.stash[RUN]
        self._is_decided = is_decided
        self._names: set[str] = set()
        self._ended: set[str] = set()
        self._results: dict[str, TrialResult] = {}
        self._skipped: set[str] = set()
        """Ids of tasks that the agent or a marker skips."""
        self._asked = self._run.settings.epochs.least - 1
        """The epoch after which the gates were asked last."""
        self._decided = 0
        """The one after which they were decided; 0 if they are not."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        self.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.expect(ids)

    def expect(self, nodeids: Iterable[str]) -> None:
        self._names |= {trial_of(nodeid) for nodeid in nodeids if is_task(nodeid)}

    # Last, when the result is on disk.
    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        if not is_task(report.nodeid) or report.outcome == REQUEUED:
            return
        name = trial_of(report.nodeid)
        if data := getattr(report, "super_result", None):
            self._results[name] = TrialResult.from_data(data)
        elif report.skipped:
            self._skipped.add(task_and_epoch(name)[0])
        # An item whose worker died has no other report.
        if report.when in (CRASH_PHASE, "teardown"):
            self._ended.add(name)
            self.ask()

    # After the trial of the dead worker is back among those to come.
    @pytest.hookimpl(trylast=True, optionalhook=True)
    def pytest_handlecrashitem(self, sched: Any) -> None:
        """Put what a dead worker had in advance back into the order of the epochs: xdist puts it last."""
        sched.pending.sort()

    def ask(self) -> None:
        """Ask the gates after each epoch that has ended since, until they are decided."""
        if self._decided:
            return
        to_come = sorted(self._names - self._ended)
        whole = min((task_and_epoch(name)[1] - 1 for name in to_come), default=0)
        for epoch in range(self._asked + 1, whole + 1):
            self._asked = epoch
            others = [name for name in to_come if task_and_epoch(name)[0] not in self._skipped]
            if self._is_decided(list(self._results.values()), others, epoch):
                # A full disk is told by the trials, which then go on.
                with suppress(InfrastructureError):
                    write_decided(self._run.path, epoch, self._run.gateway_token)
                    self._decided = epoch
                return

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was saved. Registered before the controller, so that it follows its summary."""
        epoch = self._decided
        if not epoch:
            return
        saved = [name for name in self._names - self._results.keys() if task_and_epoch(name)[1] > epoch]
        costs = [result.cost_usd for result in self._results.values() if result.cost_usd is not None]
        cost = f", about ${fmean(costs) * len(saved):.4f}" if costs else ""
        of_all = f"{len(saved)} of {counted(len(self._names), 'trial')}"
        terminalreporter.write_line(
            f"decided after {counted(epoch, 'epoch')}: {of_all} were not needed{cost}"
        )
