"""The trials of a run as their reports tell: which are to run, which have ended, and what has failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_super.session.trial.reported_outcome import CRASH_PHASE, REQUEUED, is_task, trial_of
from pytest_super.store.results import TrialResult, task_and_epoch


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

    @property
    def to_come(self) -> list[str]:
        """List the trials that have not ended, without those of skipped tasks."""
        return [name for epoch in self.left for name in self.to_come_in(epoch)]

    def to_come_in(self, epoch: int) -> Iterator[str]:
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
    unknown = {"id": trial_of(report.nodeid), "error": report.longreprtext}
    return getattr(report, "super_trouble", unknown)
