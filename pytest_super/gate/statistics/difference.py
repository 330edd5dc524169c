"""The difference between two runs on the same tasks, and its bounds.

The tasks are fixed, so the noise is that between trials of one task (Miller 2024, arXiv 2411.00640), unless
trials of one run, or of one repository in an epoch, share their luck: then the noise is larger, and shows
between tasks and between epochs. The widest estimate counts. `benchmarks/coverage.py` simulates how often the
bounds are right.
"""

from collections.abc import Sequence
from dataclasses import replace

from pytest_super.gate.statistics.bounds import FEW_TASKS, LEAST_EPOCHS, Difference
from pytest_super.gate.statistics.exact import chance_of_drop
from pytest_super.gate.statistics.samples import Numbers, Pair, Sample, dot, samples_of, shares_of
from pytest_super.gate.statistics.variance import loss_of, variance_of


def difference(pairs: Sequence[Pair]) -> Difference:
    """Estimate the difference from at least one pair."""
    found = difference_of(*samples_of(pairs), shares_of([pair.weight for pair in pairs]))
    has_few = found.tasks < FEW_TASKS and found.epochs < LEAST_EPOCHS
    return replace(found, exact=chance_of_drop(pairs)) if has_few else found


def difference_of(baseline: Sample, candidate: Sample, shares: Numbers) -> Difference:
    """Estimate the difference from at least one task."""
    return Difference(
        value=dot(candidate.means - baseline.means, shares),
        variance=variance_of(baseline, candidate, shares),
        loss=loss_of(baseline, candidate, shares),
        gain=loss_of(candidate, baseline, shares),
        tasks=float(1 / (shares**2).sum()),
        epochs=float(min(baseline.counts.max(), candidate.counts.max())),
        unseen=dot(candidate.means * (1 - candidate.is_run), shares),
    )
