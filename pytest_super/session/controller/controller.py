"""The controller of a run: stores results as their reports arrive, and at the end asks for the verdict.

If no report arrives, because the item was interrupted or its worker died, the result is read from the trial's
folder at the end of the run.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_super.errors import InfrastructureError
from pytest_super.gate.verdict import RunVerdict
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.report.junit import rewrite_junit
from pytest_super.report.terminal import write_lines
from pytest_super.session.controller.final_files import reports_of
from pytest_super.session.controller.trials import EarlyEnd, Trials, trouble_of
from pytest_super.session.run import Run, facts_of
from pytest_super.session.settings import usage_errors
from pytest_super.session.start.comparable import left_out_lines, selected_of
from pytest_super.session.start.resume import taken_line
from pytest_super.session.trial.scoring import GATES, SCORING
from pytest_super.session.trial.start_ahead import OUTCOMES
from pytest_super.store.results import INTERRUPTED, TrialResult
from pytest_super.store.run_folder import RunFolder, create_run
from pytest_super.words import counted, one_line, words_of


class Controller:
    """Owns the folder and the trials of a run."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self.config = config
        self.run = run
        self.gates = config.stash[GATES]
        self.trials = Trials()
        self.early_end = EarlyEnd(run, self.gates, self.trials) if run.settings.epochs.is_adaptive else None
        self.folder: RunFolder | None = None
        # None until the run has ended.
        self.verdict: RunVerdict | None = None
        self.collection_errors = 0
        self.trouble: list[str] = []
        """What failed apart from trials. It fails the run."""
        self.chosen_epochs: dict[str, int] = {}
        """By task: the epoch that the model has chosen, with --super-select=model."""

    def pytest_report_header(self) -> str:
        return one_line(f"super: {self.run.header}")

    # First, because the hook ends with the plugin that runs the tests.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        # With workers the controller has no items: the next hook begins the run.
        if self.may_run:
            self.expect(item.nodeid for item in session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.collection_errors += report.failed

    # optionalhook: with `-p no:xdist` pytest does not know the hook.
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
        """Note the trials that are to run, and begin the run if there are any."""
        self.trials.expect(nodeids)
        if self.trials.selected and self.folder is None:
            if self.gates.baseline is not None:
                self.gates.plan(selected_of(self.run.path))
            self.folder = self.begin()
            self.tell_plan()

    def begin(self) -> RunFolder:
        """Make the run's folder once it is known that a task will run. Raises pytest.UsageError."""
        baseline = self.gates.baseline
        facts = {
            **facts_of(self.config, self.run),
            # By which later runs find those that were compared with the same one.
            "baseline": baseline.side.run if baseline else None,
            "not_run": baseline.planned.not_run if baseline else [],
        }
        with usage_errors():
            folder = create_run(self.run.settings.directory, facts, self.run.id)
            if self.run.sandbox:
                find_provider(self.run.sandbox).sweep()
            return folder

    def tell_plan(self) -> None:
        """Print what the comparison with the baseline can find, and what is taken over."""
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None:
            return
        if (baseline := self.gates.baseline) is not None:
            from pytest_super.report.comparison import plan_lines

            terminal.ensure_newline()
            write_lines(terminal, plan_lines(baseline.planned, baseline.side, baseline.margin))
            write_lines(terminal, left_out_lines(self.run.path))
        if self.run.resumed:
            terminal.ensure_newline()
            write_lines(terminal, [one_line(taken_line(self.run.path))])

    def pytest_runtest_logreport(self, report: Any) -> None:
        has_ended = self.trials.follow(report)
        if self.folder is None:
            return
        if data := getattr(report, "super_result", None):
            with self.noted():
                self.folder.record(TrialResult.from_data(data))
        if trouble := trouble_of(report):
            with self.noted():
                self.folder.record_trouble(trouble)
        if has_ended and self.early_end is not None:
            self.early_end.ask(self.folder)

    @contextmanager
    def noted(self, kind: type[Exception] = InfrastructureError) -> Iterator[None]:
        """Keep an error of the block for the summary."""
        # Raised in a hook, it would end the run as an internal error of pytest.
        try:
            yield
        except kind as error:
            self.trouble.append(words_of(error))

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
        with self.noted(Exception):
            folder.refuse_loss()
        results = folder.final()
        self.verdict = verdict = self.gates.verdict(
            results, not_run=self.trials.not_run(results), epoch=self.run.last_epoch
        )
        if self.run.settings.select == "model":
            from pytest_super.session.controller.chosen_trials import choose_by_model

            with self.noted():
                self.chosen_epochs = choose_by_model(self.config, self.run, results, folder.path)
        self.call_finished_hook(results)
        for write in reports_of(self.run, folder.path, verdict):
            # Whatever one of them raises, the others are written.
            with self.noted(Exception):
                write()
        with self.noted():
            self.complete_junit(folder, verdict)
        self.remember_missed()
        session.exitstatus = exit_status(
            session.exitstatus, verdict, only_errors=self.trials.only_errors, has_trouble=bool(self.trouble)
        )

    def complete_junit(self, folder: RunFolder, verdict: RunVerdict) -> None:
        """Raises InfrastructureError."""
        if xml := self.config.getoption("xmlpath", None):
            doubled = self.trials.failed & self.trials.afterwards.keys()
            settings = self.run.settings
            facts = {"agent": settings.agent, "scoring": settings.scoring, "epochs": str(settings.epochs)}
            metrics = self.config.stash[SCORING].metrics
            rewrite_junit(xml, folder, {**facts, **verdict.facts}, metrics, doubled)

    def remember_missed(self) -> None:
        """Have pytest's `--lf` run the missed trials again. It keeps those alone whose report failed."""
        if cache := getattr(self.config, "cache", None):
            key = "cache/lastfailed"
            cache.set(key, {**cache.get(key, {}), **dict.fromkeys(sorted(self.trials.missed), True)})

    def call_finished_hook(self, results: list[TrialResult]) -> None:
        try:
            self.config.hook.pytest_super_run_finished(config=self.config, results=results)
        except (Exception, SystemExit, *OUTCOMES) as error:
            # Raising here would lose the summary of a run that was paid for.
            self.trouble.append(f"pytest_super_run_finished raised {words_of(error)}")


def exit_status(status: int, verdict: RunVerdict, *, only_errors: bool, has_trouble: bool) -> int:
    """Pytest's exit status, changed by the verdict, and by results that could not be stored."""
    if status == pytest.ExitCode.TESTS_FAILED and verdict.allows_errors and only_errors:
        status = pytest.ExitCode.OK
    fails = verdict.fails or has_trouble
    return pytest.ExitCode.TESTS_FAILED if status == pytest.ExitCode.OK and fails else status
