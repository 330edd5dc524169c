"""The controller's side of a run: results stored as their reports arrive, the summary, the gate, JUnit XML.

It works the same with and without xdist. A trial's report carries its result. If no report arrives, because
the item was interrupted or its worker died, the result is read from the trial's folder at the end of the run.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.errors import InfrastructureError
from pytest_super.gates.figures import why_invalid, without_interrupted
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.report.junit import rewrite_junit
from pytest_super.report.repeats import candidates
from pytest_super.report.summary import Group
from pytest_super.report.table import WIDTH
from pytest_super.report.terminal import summary_lines, trouble_lines, verdict_lines, write_lines
from pytest_super.session.baseline_gate import BASELINE_GATE
from pytest_super.session.crash import is_run_again
from pytest_super.session.outcome import is_task, trial_of
from pytest_super.session.run import HINTS, REFUSED, facts_of
from pytest_super.session.scoring import SCORING
from pytest_super.session.selection import keyword_hints
from pytest_super.session.start_ahead import OUTCOMES
from pytest_super.session.verdict import verdict_of_run
from pytest_super.store.results import INTERRUPTED, TrialResult
from pytest_super.store.run_folder import RunFolder, create_run
from pytest_super.store.verdict import write_verdict
from pytest_super.words import counted, one_line, words_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from pytest_super.session.run import Run
    from pytest_super.store.verdict import RunVerdict


class Controller:
    """Collects the results of a run and reports them."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self.config = config
        self.run = run
        self.scoring = config.stash[SCORING]
        self.baseline = config.stash.get(BASELINE_GATE, None)
        self.folder: RunFolder | None = None
        self.deaths: Counter[str] = Counter()
        self.selected: set[str] = set()
        """Names of the trials that are to run."""
        self.reported: set[str] = set()
        self.collection_errors = 0
        self.failed_reports = 0
        self.failed_by_error = 0
        self.trouble: list[str] = []
        self.worker_hints: list[str] = []
        self.has_lost_worker = False
        self.chosen_epochs: dict[str, int] = {}
        """By task: the epoch that the model has chosen, with --super-select=model."""
        self.failed_trials: set[str] = set()
        self.afterwards: dict[str, str] = {}
        """By name of the trial: the error of its last run's teardown."""

    def pytest_report_header(self) -> str:
        return one_line(f"super: {self.run.header}")

    # optionalhook: with `-p no:xdist` pytest does not know the hook.
    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["super"] = self.run.to_worker()

    # First, because the hook ends with the plugin that runs the tests.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        # With workers the controller has no items: the next hook opens the folder.
        if self.may_run:
            self.expect(item.nodeid for item in session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.collection_errors += report.failed

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Raises pytest.Session.Interrupted after errors, as pytest does without workers."""
        # A worker with errors ends by itself. Later xdist would send it items, which raises then.
        if not self.may_run:
            raise pytest.Session.Interrupted(f"{counted(self.collection_errors, 'error')} during collection")
        self.expect(ids)

    @property
    def may_run(self) -> bool:
        return bool(not self.collection_errors or self.config.option.continue_on_collection_errors)

    def expect(self, nodeids: Iterable[str]) -> None:
        """Note the trials that are to run, and make the run's folder if there are any."""
        self.selected |= {trial_of(nodeid) for nodeid in nodeids if is_task(nodeid)}
        if self.selected:
            self.open_folder()

    def open_folder(self) -> None:
        """Make the run's folder once it is known that a task will run. Raises pytest.UsageError."""
        if self.folder is not None:
            return
        try:
            facts = facts_of(self.config, self.run)
            self.folder = create_run(self.run.settings.directory, facts, self.run.id)
            if self.run.sandbox:
                find_provider(self.run.sandbox).sweep()
        except InfrastructureError as error:
            raise pytest.UsageError(str(error)) from None

    def pytest_runtest_logreport(self, report: Any) -> None:
        data = getattr(report, "super_result", None)
        if data is not None and self.folder is not None:
            with self.noted():
                self.folder.record(TrialResult.from_data(data))
        if report.failed:
            self.failed_reports += 1
            is_error = report.when != "call" or data is None or data["error"] is not None
            self.failed_by_error += is_task(report.nodeid) and is_error
        if is_task(report.nodeid):
            self.follow(report)

    def follow(self, report: Any) -> None:
        """Remember whether the last run of a trial and its teardown failed."""
        name = trial_of(report.nodeid)
        self.reported.add(name)
        if report.when == "setup":
            self.failed_trials.discard(name)
            self.afterwards.pop(name, None)
        elif report.when == "call" and report.failed:
            self.failed_trials.add(name)
        elif report.when == "teardown" and report.failed:
            trouble = getattr(report, "super_trouble", {"id": name, "error": report.longreprtext})
            self.afterwards[name] = trouble["error"]
            if self.folder is not None:
                with self.noted():
                    self.folder.record_trouble(trouble)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Keep an error of the block for the summary."""
        # Raised in a hook, it would end the run as an internal error of pytest.
        try:
            yield
        except InfrastructureError as error:
            self.trouble.append(str(error))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """Take the hints of any worker, since all collect the same. One that died has an error and no output.

        Raises pytest.UsageError if a worker has refused to run.
        """
        self.has_lost_worker |= error is not None
        output = getattr(node, "workeroutput", {})
        if REFUSED in output:
            raise pytest.UsageError(output[REFUSED])
        self.worker_hints = output.get(HINTS, self.worker_hints)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        """Run a trial whose worker died once more, unless it was over, before its crash is reported."""
        if not is_task(crashitem):
            return
        self.deaths[crashitem] += 1
        known = self.folder.ended_result(trial_of(crashitem)) if self.folder else None
        if is_run_again(report, self.deaths[crashitem], known):
            sched.mark_test_pending(crashitem)

    # Wrappers end after other hooks; the last one is inside the terminal's, which prints the summary.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Runs after xdist has ended its workers and pytest has written its XML, before the summary."""
        try:
            return (yield)
        except OSError as error:
            if self.folder is None:
                raise
            # Such as that of the JUnit XML on a full disk. Raised, it would lose the summary of a paid run.
            self.trouble.append(f"the end of the session failed (JUnit XML, hooks): {words_of(error)}")
            return None
        # Also if a hook of another plugin raised: the results were paid for.
        finally:
            if self.folder is not None:
                self.finish(session, self.folder)

    def finish(self, session: pytest.Session, folder: RunFolder) -> None:
        with self.noted():
            if session.exitstatus == pytest.ExitCode.INTERRUPTED:
                folder.sweep(INTERRUPTED, "the run was interrupted")
            else:
                folder.sweep("crashed", "the process that ran this trial died")
        if self.has_lost_worker and self.run.sandbox:
            # The next run sweeps, too, so it is no trouble if the engine is gone.
            with suppress(InfrastructureError):
                find_provider(self.run.sandbox).sweep()
        results = folder.final()
        self.choose(results, folder)
        self.call_finished_hook(results)
        verdict = self.verdict(results)
        with self.noted():
            write_verdict(folder.path, verdict)
        if xml := self.config.getoption("xmlpath", None):
            doubled = self.failed_trials & self.afterwards.keys()
            with self.noted():
                facts = {**self.run.junit_facts(), **verdict.facts}
                rewrite_junit(xml, folder, facts, self.scoring.metrics, doubled)
        session.exitstatus = self.exit_status(session.exitstatus, results)

    def call_finished_hook(self, results: list[TrialResult]) -> None:
        try:
            self.config.hook.pytest_super_run_finished(config=self.config, results=results)
        except (Exception, SystemExit, *OUTCOMES) as error:
            # Raising here would lose the summary of a run that was paid for.
            self.trouble.append(f"pytest_super_run_finished raised {words_of(error)}")

    def exit_status(self, status: int, results: list[TrialResult]) -> int:
        """Pytest's exit status, changed by gates, allowed errors, and results that could not be stored.

        Results count in addition to reports, because a worker that died can have lost a failed report.
        """
        settings = self.run.settings
        only_errors = self.failed_reports == self.failed_by_error
        may_have_errors = settings.max_errors is not None and not why_invalid(results, settings.max_errors)
        if status == pytest.ExitCode.TESTS_FAILED and may_have_errors and only_errors:
            status = pytest.ExitCode.OK
        has_failed = (
            bool(self.trouble)
            or (not may_have_errors and any(result.is_error for result in results))
            or (not settings.is_gated and not all(result.solved or result.is_error for result in results))
            or not all(gate.is_passed(results) for gate in self.scoring.gates)
            or (self.baseline is not None and not self.baseline.is_passed(results))
            # A gate is for all trials.
            or bool(settings.is_gated and self.not_run(results))
        )
        return pytest.ExitCode.TESTS_FAILED if status == pytest.ExitCode.OK and has_failed else status

    def choose(self, results: Sequence[TrialResult], folder: RunFolder) -> None:
        """Let the model choose among the epochs of each task, if the options ask for it."""
        group = Group(results=without_interrupted(results))
        if self.run.settings.select != "model" or not candidates(group):
            return
        from pytest_super.session.choice import choose_by_model

        with self.noted():
            self.chosen_epochs = choose_by_model(self.config, self.run, group, folder.path)

    def verdict(self, results: Sequence[TrialResult]) -> RunVerdict:
        return verdict_of_run(self.config, results, self.not_run(results))

    def not_run(self, results: Iterable[TrialResult]) -> int:
        """The number of trials that did not begin."""
        return len(self.selected - self.reported - {result.name for result in results})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        width = max(WIDTH, self.config.get_terminal_writer().fullwidth)
        lines = [*self.summary(width), *self.worker_hints]
        if lines:
            terminalreporter.section("super")
        write_lines(terminalreporter, lines)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Write the verdicts as the last lines, after those that pytest writes at the end of the session."""
        terminalreporter = config.pluginmanager.get_plugin("terminalreporter")
        if terminalreporter is None or self.folder is None:
            return
        write_lines(terminalreporter, verdict_lines(self.verdict(self.folder.final())))

    def summary(self, width: int) -> list[str]:
        """Empty if no trial began and nothing failed."""
        if self.folder is None:
            return []
        # Each trouble once, because on a full disk every trial has the same.
        lines = [*self.result_lines(self.folder, width), *map(one_line, dict.fromkeys(self.trouble))]
        if not lines:
            return []
        results = self.folder.final()
        if self.baseline is not None:
            lines += ["", *self.baseline.summary_lines(results)]
        hints = keyword_hints(self.config.option.keyword, [result.category for result in results])
        return [*lines, *hints, f"results: {self.folder.path}"]

    def result_lines(self, folder: RunFolder, width: int) -> Iterator[str]:
        if results := folder.final():
            return summary_lines(
                results,
                self.scoring.metrics,
                list(folder.results.values()),
                self.afterwards,
                self.not_run(results),
                folder.path,
                width,
                self.chosen_epochs,
            )
        return trouble_lines(self.afterwards)
