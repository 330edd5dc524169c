"""What trials that ended with an error could have shown: a verdict holds whatever that is, or it is none.

Errors need not hit all tasks alike: those that hit only trials that would have failed hide a drop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_super.gate.comparison.matching import only_errors
from pytest_super.gate.statistics.samples import Pair

if TYPE_CHECKING:
    from pytest_super.gate.comparison.side import Side


def with_errors(baseline: Side, candidate: Side, compared: Sequence[str]) -> Iterator[dict[str, list[Pair]]]:
    """Map sets to both sides' values if the errors had been worst, and best, for the candidate.

    Nothing without errors. `compared` are the ids of the tasks of which both sides have valid trials.
    """
    ids = [*compared, *only_errors(baseline, candidate), *only_errors(candidate, baseline)]
    if candidate.errors.keys() & ids or baseline.errors.keys() & ids:
        yield filled(baseline, candidate, ids, 0.0)
        yield filled(baseline, candidate, ids, 1.0)


def filled(baseline: Side, candidate: Side, ids: Sequence[str], value: float) -> dict[str, list[Pair]]:
    """Give each error of the candidate this value, and each of the baseline the opposite one."""
    pairs = defaultdict(list)
    for id in ids:
        old, new = baseline.tasks.get(id), candidate.tasks.get(id)
        # As in the comparison without errors, whose task this can be.
        known = old or candidate.tasks[id]
        failed = range(baseline.errors.get(id, 0)), range(candidate.errors.get(id, 0))
        pairs[known.set].append(
            Pair(
                baseline=[*(old.values if old else ()), *[1 - value] * len(failed[0])],
                candidate=[*(new.values if new else ()), *[value] * len(failed[1])],
                weight=(new or known).weight,
                is_run=id not in candidate.not_run,
                repository=known.repository,
                baseline_epochs=[*(old.epochs if old else ()), *failed[0]],
                candidate_epochs=[*(new.epochs if new else ()), *failed[1]],
            )
        )
    return pairs
