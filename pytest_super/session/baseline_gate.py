"""The gate of a run against a baseline: what it can find is told first, its verdict last."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import SuperError
from pytest_super.session.outcome import is_task, trial_of
from pytest_super.session.run import RUN
from pytest_super.statistics import require_scipy
from pytest_super.store.json_lines import append, disk_errors
from pytest_super.store.results import task_and_epoch
from pytest_super.store.verdict import FAILED, OPEN, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_super.comparison.comparison import Comparison
    from pytest_super.comparison.side import Side
    from pytest_super.gates.plan import RunPlan
    from pytest_super.session.run import Run
    from pytest_super.store.results import TrialResult
    from pytest_super.store.verdict import Regression

STILL_OPEN = Verdict(OPEN, "not all trials have ended")

BASELINE_GATE: pytest.StashKey[BaselineGate] = pytest.StashKey()


class BaselineGate:
    """On the controller of a run with --super-baseline."""

    def __init__(self, config: pytest.Config) -> None:
        """Reads the baseline. Raises pytest.UsageError."""
        self._config = config
        self._run: Run = config.stash[RUN]
        self._baseline = read_baseline(self._run)
        self._comparison: Comparison | None = None
        self._plan: RunPlan | None = None
        self._trials: set[str] = set()
        """The names of those that are to run."""
        self._reported: set[str] = set()

    @property
    def margin(self) -> float:
        return self._run.settings.max_regression / 100

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        if session.items:
            self.tell_plan(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.tell_plan(ids)

    def tell_plan(self, nodeids: Iterable[str]) -> None:
        """Print what the comparison can find, once."""
        if self._trials:
            return
        from pytest_super.gates.plan import plan_of
        from pytest_super.report.comparison import plan_lines

        self._trials = {trial_of(nodeid) for nodeid in nodeids if is_task(nodeid)}
        ids = {task_and_epoch(name)[0] for name in self._trials}
        self._plan = plan_of(self._baseline, ids, self._run.settings.epochs, self.margin)
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        for line in plan_lines(self._plan, self._baseline, self.margin):
            if terminal is not None:
                terminal.ensure_newline()
                terminal.write_line(line)

    def is_decided(self, results: Sequence[TrialResult], epoch: int) -> bool:
        """Whether there is a verdict after an epoch that is not the last one."""
        from pytest_super.statistics.decision import CANNOT_TELL

        try:
            return self.compared(results, epoch).verdict != CANNOT_TELL
        except SuperError:
            return False

    def comparison(self, results: Iterable[TrialResult]) -> Comparison:
        """Made once, when the run has finished. Raises SuperError if nothing can be compared."""
        if self._comparison is None:
            self._comparison = self.compared(results, self._run.last_epoch)
        return self._comparison

    def compared(self, results: Iterable[TrialResult], epoch: int) -> Comparison:
        """By the trials until the end of an epoch. Raises SuperError if nothing can be compared."""
        from pytest_super.comparison.comparison import by_one_look, compare
        from pytest_super.comparison.side import side_of

        until = [result for result in results if result.epoch <= epoch]
        candidate = side_of(self._run.id, self._run.subject, until)
        confidence = by_one_look if self._plan is None else self._plan.confidence_after(epoch)
        return compare(self._baseline, candidate, self.margin, confidence)

    def is_passed(self, results: Sequence[TrialResult]) -> bool:
        from pytest_super.statistics.decision import CANNOT_TELL, REGRESSED

        try:
            verdict = self.comparison(results).verdict
        except SuperError:
            return False
        if verdict == CANNOT_TELL:
            return self._run.settings.cannot_tell != "fail"
        return verdict != REGRESSED

    def summary_lines(self, results: Sequence[TrialResult]) -> Iterator[str]:
        from pytest_super.report.comparison import comparison_lines

        if self.is_open(results):
            return
        try:
            yield from comparison_lines(self.comparison(results))
        except SuperError as error:
            yield str(error)

    def pytest_super_run_finished(self, results: Sequence[TrialResult]) -> None:
        """Append the comparison to the summary of a job of GitHub Actions. Raises InfrastructureError."""
        path = os.environ.get("GITHUB_STEP_SUMMARY")
        if not path:
            return
        from pytest_super.report.step_summary import markdown

        try:
            text = STILL_OPEN.line if self.is_open(results) else markdown(self.comparison(results))
        except SuperError as error:
            text = f"Agent: {error}"
        with disk_errors(Path(path)):
            append(Path(path), f"### {text}\n")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._reported.add(trial_of(report.nodeid))

    def is_open(self, results: Sequence[TrialResult]) -> bool:
        """Whether trials have not begun or were interrupted. One that is skipped is not waited for."""
        not_begun = self._trials - self._reported - {result.name for result in results}
        return bool(not_begun) or any(result.is_interrupted for result in results)

    def verdict(self, results: Sequence[TrialResult]) -> Verdict:
        from pytest_super.report.comparison import gate_verdict

        if self.is_open(results):
            return STILL_OPEN
        try:
            return gate_verdict(self.comparison(results))
        except SuperError:
            return Verdict(FAILED, "nothing can be compared")

    def regression(self, results: Sequence[TrialResult]) -> dict[str, Regression]:
        """By set; empty if nothing is compared."""
        from pytest_super.report.comparison import regression_of

        if self.is_open(results):
            return {}
        try:
            return {one.set: regression_of(one) for one in self.comparison(results).sets}
        except SuperError:
            return {}


def most_epochs(run: Run, ids: Collection[str]) -> Mapping[str, int]:
    """How often each task runs at most. Raises pytest.UsageError if the baseline cannot be read."""
    settings = run.settings
    if settings.baseline is None:
        return dict.fromkeys(ids, settings.epochs.most)
    side = read_baseline(run)
    from pytest_super.gates.plan import plan_of

    return plan_of(side, ids, settings.epochs, settings.max_regression / 100).epochs


def read_baseline(run: Run) -> Side:
    from pytest_super.comparison.baseline import read_side

    path = run.settings.baseline
    assert path is not None
    try:
        require_scipy()
        return read_side(path)
    except SuperError as error:
        raise pytest.UsageError(f"--super-baseline: {error}") from None
