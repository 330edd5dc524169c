"""The hooks of reports: a trial's outcome is passed, failed, missed under a gate, stopped, or an error.

The module is a plugin of each process of a run.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from pytest_super.errors import InfrastructureError, SuperError
from pytest_super.report.junit import figures_of_trial
from pytest_super.session.run import RUN
from pytest_super.session.trial.item import RESULT, TaskItem, Unsolved
from pytest_super.store.results import TrialResult
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.words import printable, words_of

REQUEUED = "requeued"
MISSED, STOPPED = ("MISSED", {"yellow": True}), ("STOPPED", {"yellow": True})
# `when` of the report that xdist makes for an item whose worker died.
CRASH_PHASE = "???"


def is_task(nodeid: str) -> bool:
    return f"{TASK_SUFFIX}::" in nodeid


def trial_of(nodeid: str) -> str:
    """The name of the trial of an item."""
    return nodeid.rpartition("::")[2]


# Inside of those of other plugins, which read the outcome of the report.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if isinstance(item, TaskItem):
        judge(item, call, report)
    return report


def judge(item: TaskItem, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put the trial's result on its report, and change the report's outcome and text if needed."""
    if report.when == "call" and RESULT in item.stash:
        judge_trial(item, call, report)
    elif report.when != "teardown" and report.failed:
        judge_no_trial(item, call, report)
    elif report.when == "teardown" and report.failed:
        judge_teardown(item, call, report)
    elif report.when == "setup" and report.skipped:
        item.discard_folder()
    if result := item.stash.get(RESULT, None):
        report.user_properties += figures_of_trial(result, item.config.stash[RUN].path)


def judge_no_trial(item: TaskItem, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    assert call.excinfo is not None
    if isinstance(call.excinfo.value, SuperError):
        report.longrepr = printable(str(call.excinfo.value))
    stop_if_final(item, call.excinfo.value)
    item.stash[RESULT] = result = result_without_trial(item, words_of(call.excinfo.value))
    report.super_result = result.to_data()  # type: ignore[attr-defined]


def stop_if_final(item: TaskItem, error: BaseException | None) -> None:
    """End the session at a final error, which would otherwise occur in every further trial."""
    if isinstance(error, InfrastructureError) and error.is_final:
        item.session.shouldstop = printable(str(error))


def judge_teardown(item: TaskItem, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Report the failure apart from the result, which was sent with the report of the call phase."""
    assert call.excinfo is not None
    words = printable(words_of(call.excinfo.value))
    report.super_trouble = trouble_after(item.known_result(), words)  # type: ignore[attr-defined]
    if isinstance(call.excinfo.value, SuperError):
        report.longrepr = words


def trouble_after(trial: TrialResult, error: str) -> dict[str, Any]:
    """A failure after a trial, as a line of trouble.jsonl."""
    place = {"id": trial.id, "epoch": trial.epoch, "rerun": trial.rerun, "folder": trial.folder}
    return {**place, "error": error}


def result_without_trial(item: TaskItem, error: str) -> TrialResult:
    """The result of a trial that never began, also written to disk if possible."""
    try:
        folder = item.open_folder()
        result = replace(folder.start, stop_reason="error", error=error)
        folder.write_result(result)
        folder.close()
    except InfrastructureError as disk:
        result = replace(item.start_result(), stop_reason="error", error=f"{error}\n{disk}")
    return result


def judge_trial(item: TaskItem, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    result = item.stash[RESULT]
    report.super_result = result.to_data()  # type: ignore[attr-defined]
    is_gated = item.config.stash[RUN].settings.is_gated
    # Pytest fails a run with any failed report, but under a gate only the mean decides.
    if is_gated and call.excinfo and call.excinfo.errisinstance(Unsolved):
        pass_over(item, report, f"missed: {call.excinfo.value}")
    elif report.failed and result.is_interrupted:
        pass_over(item, report, f"stopped: {result.error}")


def pass_over(item: TaskItem, report: pytest.TestReport, reason: str) -> None:
    report.outcome = "skipped"
    # The line of a skip counts from 1, unlike that of `reportinfo`.
    report.longrepr = (str(item.path), item.task._line, f"Skipped: {printable(reason)}")


def pytest_report_teststatus(report: Any) -> Any:
    """The category, letter and word of a report in the terminal; None for those of pytest."""
    result = getattr(report, "super_result", None)
    if report.outcome == REQUEUED:
        return REQUEUED, "R", "REQUEUED"
    # Such a trial has no result, so it is an error and not a miss.
    if report.when == CRASH_PHASE and is_task(report.nodeid):
        return "error", "E", "ERROR"
    if result is None or report.when != "call":
        return None
    if result["error"] is not None and report.failed:
        return "error", "E", "ERROR"
    if report.outcome == "skipped":
        return ("missed", "m", MISSED) if result["error"] is None else ("stopped", "S", STOPPED)
    return None
