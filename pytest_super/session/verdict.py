"""The verdict of a run: what its gates and its baseline decide when it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.gates.fail_under import verdicts
from pytest_super.gates.figures import why_invalid
from pytest_super.session.baseline_gate import BASELINE_GATE
from pytest_super.session.run import RUN
from pytest_super.session.scoring import SCORING
from pytest_super.store.verdict import RunVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from pytest_super.store.results import TrialResult


def verdict_of_run(config: pytest.Config, results: Sequence[TrialResult], not_run: int) -> RunVerdict:
    """`results` has the last run of each trial, `not_run` is the number of trials that did not begin."""
    gates, baseline = config.stash[SCORING].gates, config.stash.get(BASELINE_GATE, None)
    invalid = why_invalid(results, config.stash[RUN].settings.max_errors)
    found = list(verdicts(results, gates, is_valid=not invalid, not_run=not_run))
    if baseline is None:
        return RunVerdict(invalid=invalid, gates=found)
    return RunVerdict(
        invalid=invalid,
        gates=[*found, baseline.verdict(results)],
        regression=baseline.regression(results),
    )
