"""The trials of a run as their reports tell: which are to run, which have ended, and what has failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from statistics import fmean
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.gate.verdict import RunGates, whole_epochs
from pytest_super.session.run import Run
from pytest_super.session.trial.reported_outcome import CRASH_PHASE, REQUEUED, is_task, trial_of
from pytest_super.store.results import TrialResult, task_and_epoch
from pytest_super.store.run_folder import RunFolder
from pytest_super.store.verdict import write_decided
from pytest_super.words import counted


class Trials:
    """Follows the reports on the controller. All sets but `skipped` and `missed` contain names of trials."""

    def __init__(self) -> None:
        self.selected: set[str] = set()
        """Those that are to run."""
        self.left: defaultdict[int, set[str]] = defaultdict(set)
        """By epoch: those that have not ended."""
        self.reported: set[str] = set()
        self.ended: set[str] = set()
        self.skipped: set[str] = set()
        """Ids of tasks that the agent or a marker skips."""
        self.missed: set[str] = set()
        """Node ids of those that did not pass, and that pytest knows as skipped."""
        self.failed: set[str] = set()
        """Those whose last run failed."""
        self.afterwards: dict[str, str] = {}
        """By name of the trial: the error of its last run's teardown."""
        self.only_errors = True
        """Whether no report has failed for another reason than an error around an agent."""

    def to_come_in(self, epoch: int) -> Iterator[str]:
        """The trials that have not ended, without those of skipped tasks."""
        return (name for name in self.left[epoch] if task_and_epoch(name)[0] not in self.skipped)

    def not_run(self, results: Iterable[TrialResult]) -> int:
        """The number of those that did not begin."""
        return len(self.selected - self.reported - {result.name for result in results})

    def expect(self, nodeids: Iterable[str]) -> None:
        new = {trial_of(nodeid) for nodeid in nodeids if is_task(nodeid)} - self.selected
        self.selected |= new
        for name in new:
            self.left[task_and_epoch(name)[1]].add(name)

    def follow(self, report: Any) -> bool:
        """Whether a trial has ended by it."""
        data, is_trial = getattr(report, "super_result", None), is_task(report.nodeid)
        if report.failed:
            is_error = report.when != "call" or data is None or data["error"] is not None
            self.only_errors &= is_trial and is_error
        if not is_trial:
            return False
        name = trial_of(report.nodeid)
        self.reported.add(name)
        if report.skipped and data is None:
            self.skipped.add(task_and_epoch(name)[0])
        elif report.skipped:
            self.missed.add(report.nodeid)
        if report.when == "setup":
            self.failed.discard(name)
            self.afterwards.pop(name, None)
        elif report.when == "call" and report.failed:
            self.failed.add(name)
        if trouble := trouble_of(report):
            self.afterwards[name] = trouble["error"]
        # An item whose worker died has no other report.
        has_ended = report.when in (CRASH_PHASE, "teardown") and report.outcome != REQUEUED
        if has_ended:
            self.ended.add(name)
            self.left[task_and_epoch(name)[1]].discard(name)
        return has_ended


def trouble_of(report: Any) -> dict[str, Any]:
    """A failure after a trial, as a line of trouble.jsonl; empty if the report is none of one."""
    if not (is_task(report.nodeid) and report.when == "teardown" and report.failed):
        return {}
    return getattr(report, "super_trouble", {"id": trial_of(report.nodeid), "error": report.longreprtext})


class EarlyEnd:
    """Ends an adaptive run once its gates are decided: no further trial begins, and none is stopped."""

    def __init__(self, run: Run, gates: RunGates, trials: Trials) -> None:
        self._run = run
        self._gates = gates
        self._trials = trials
        self._asked = run.settings.epochs.least - 1
        """The epoch after which the gates were asked last."""
        self._decided = 0
        """The one after which they were decided; 0 if they are not."""

    def ask(self, folder: RunFolder) -> None:
        """Ask the gates after each epoch that has ended since, until they are decided."""
        # Most trials end no epoch, and the names of all that are to come are thousands.
        if self._decided or any(self._trials.to_come_in(self._asked + 1)):
            return
        to_come = [name for epoch in self._trials.left for name in self._trials.to_come_in(epoch)]
        for epoch in whole_epochs(to_come, after=self._asked):
            self._asked = epoch
            if self._gates.is_decided(folder.final(), to_come, epoch):
                # A full disk is told by the trials, which then go on.
                with suppress(InfrastructureError):
                    write_decided(folder.path, epoch, self._run.gateway_token)
                    self._decided = epoch
                return

    def lines(self, folder: RunFolder) -> list[str]:
        """What was saved."""
        if not self._decided:
            return []
        results = {result.name: result for result in folder.final()}
        left = self._trials.selected - results.keys()
        not_needed = sum(task_and_epoch(name)[1] > self._decided for name in left)
        costs = [result.cost_usd for result in results.values() if result.cost_usd is not None]
        cost = f", about ${fmean(costs) * not_needed:.4f}" if costs else ""
        epochs, trials = counted(self._decided, "epoch"), counted(len(self._trials.selected), "trial")
        return [f"decided after {epochs}: {not_needed} of {trials} were not needed{cost}"]
