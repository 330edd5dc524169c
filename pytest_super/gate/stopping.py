"""When an adaptive run stops: after the first whole epoch by which each of its gates is decided.

A gate on plain figures is decided when no result that is still to come can change it, the gate against a
baseline when the comparison has a verdict. Asked within an epoch, they would see more of the trials that end
soon.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from pytest_super.gate import Gate
from pytest_super.gate.figures import why_invalid
from pytest_super.metrics import Metric
from pytest_super.store.results import TrialResult, task_and_epoch

# More tokens than any trial uses.
MOST_TOKENS = 10**15


def whole_epochs(to_come: Iterable[str], *, after: int) -> range:
    """The epochs after `after` that have ended whole. `to_come` has the names of the trials to come."""
    return range(after + 1, min((task_and_epoch(name)[1] for name in to_come), default=1))


def are_settled(
    gates: Iterable[Gate],
    metrics: Sequence[Metric],
    results: Sequence[TrialResult],
    to_come: Collection[str],
    max_errors: float | None,
) -> bool:
    """Whether no result of the trials to come can change one of the gates.

    As long as a task of theirs has no result, nothing is settled. Nor is it while too many errors make the
    figures invalid and further valid trials could change that.
    """
    known = {result.id: result for result in results}
    ids = [task_and_epoch(name)[0] for name in to_come]
    if not known.keys() >= set(ids):
        return False
    best = [*results, *(extreme(known[id], metrics, is_best=True) for id in ids)]
    worst = [*results, *(extreme(known[id], metrics, is_best=False) for id in ids)]
    if why_invalid(results, max_errors):
        return bool(why_invalid(best, max_errors))
    return all(gate.decide(best)[0] == gate.decide(worst)[0] for gate in gates)


def extreme(known: TrialResult, metrics: Sequence[Metric], *, is_best: bool) -> TrialResult:
    """The best or the worst result of another trial of the task, whatever the gate bounds."""
    values = {
        metric.name: best_of(metric) if is_best else metric.value_of_error
        for metric in metrics
        if metric.name in known.applicable
    }
    used: dict[str, Any] = {
        "cost_usd": 0.0 if is_best else inf,
        "prompt_tokens": 0 if is_best else MOST_TOKENS,
        "completion_tokens": 0,
    }
    return replace(known, error=None, solved=is_best, metrics={**known.metrics, **values}, **used)


def best_of(metric: Metric) -> float:
    if metric.best is not None:
        return metric.best
    return inf if metric.higher_is_better else -inf
