"""What becomes of a trial whose xdist worker has died."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.session.outcome import REQUEUED, trouble_after

if TYPE_CHECKING:
    from pytest_super.store.results import TrialResult

MAX_RERUNS = 1
"""A trial whose worker died is run once more. A second death is an error."""


def is_run_again(report: Any, deaths: int, known: TrialResult | None) -> bool:
    """Whether the trial is run again. Its report is changed accordingly.

    `deaths`: how many workers the trial has lost. `known`: its result, if it arrived before the crash.
    """
    if known is not None:
        # The trial is over. Run again, a miss would become the better one of two tries.
        report.when = "teardown"
        report.longrepr = "the process that had run it died"
        report.super_trouble = trouble_after(known, report.longrepr)
        return False
    if deaths > MAX_RERUNS:
        return False
    # Neither passed nor failed, so a crash counts only if the rerun fails too.
    report.outcome = REQUEUED
    return True
