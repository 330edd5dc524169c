"""What several trials of each task say together: pass@k, and the one that is chosen without the gold.

With values that are 1 (solved) or 0, the best of k is pass@k (Chen et al. 2021, arXiv 2107.03374), and the
worst of k is pass^k (Yao et al. 2024, arXiv 2406.12045). Both are unbiased: means over all choices of k.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb, fsum, isclose
from operator import attrgetter
from statistics import fmean
from typing import NamedTuple

from pytest_super.metrics.means import weighted_mean
from pytest_super.report.summary import Group, grouped
from pytest_super.store.results import TrialResult
from pytest_super.words import counted

# Values of two candidates agree within this relative difference.
AGREEMENT = 1e-6
MOST_K = 10


class PassAt(NamedTuple):
    """The probabilities that one of k trials of a task solves it, and that all do, as means over tasks."""

    k: int
    value: float
    all_of_k: float
    tasks: int
    """Those over which the mean is, the same for every k."""


def pass_at(group: Group) -> list[PassAt]:
    """pass@k and pass^k, unbiased, for each k up to the number of valid trials that half of the tasks have.

    All are over the tasks with that many, because means over different tasks cannot be compared. Empty if
    half of the tasks have a single trial.
    """
    tasks = by_task(group.valid)
    counts = sorted(map(len, tasks), reverse=True)
    most = min(counts[(len(counts) - 1) // 2], MOST_K) if counts else 0
    same = [trials for trials in tasks if len(trials) >= most]
    found = (pass_at_k(same, k) for k in range(1, most + 1))
    return [one for one in found if one is not None] if most > 1 else []


def pass_at_k(tasks: Sequence[Sequence[TrialResult]], k: int) -> PassAt | None:
    found = [([float(one.solved) for one in trials], trials[0].weight) for trials in tasks]
    best = weighted_mean((best_of(solved, k), weight) for solved, weight in found)
    worst = weighted_mean((worst_of(solved, k), weight) for solved, weight in found)
    return None if best is None or worst is None else PassAt(k, best, worst, len(tasks))


def best_of(values: Sequence[float], k: int) -> float:
    """The expected largest of k values; k is at most their number."""
    return 0.0 - worst_of([-value for value in values], k)


def worst_of(values: Sequence[float], k: int) -> float:
    """The expected smallest of k values; k is at most their number."""
    ascending = sorted(values)
    count = len(ascending)
    # Of the choices in which a value is the smallest, the others are among those after it.
    total = fsum(value * comb(count - place, k - 1) for place, value in enumerate(ascending, 1))
    return total / comb(count, k)


def by_task(results: Iterable[TrialResult]) -> list[list[TrialResult]]:
    return [sorted(trials, key=attrgetter("epoch")) for trials in grouped(results, attrgetter("id"))]


def candidates(group: Group) -> list[list[TrialResult]]:
    """The valid trials of each item of a paper that has several."""
    return [trials for trials in by_task(group.valid) if trials[0].masked and len(trials) > 1]


def chosen_share(group: Group) -> float | None:
    """The share of solved tasks when one trial of each is chosen by execution, at random among equals.

    None without an item of a paper that has several valid trials; only these count.
    """
    equals = map(best_by_execution, candidates(group))
    return weighted_mean((fmean(one.solved for one in trials), trials[0].weight) for trials in equals)


def best_by_execution(trials: Sequence[TrialResult]) -> list[TrialResult]:
    """The trials whose experiments yield most values, and of these the ones with which most others agree."""
    found = [values_of(trial) for trial in trials]
    ranks = [(len(one), sum(agree(one, other) for other in found)) for one in found]
    best = max(ranks)
    return [trial for trial, rank in zip(trials, ranks, strict=True) if rank == best]


def values_of(trial: TrialResult) -> dict[tuple[str, str], str]:
    """The values that its experiments have yielded, by command and name."""
    return {
        (str(value.get("command", "")), str(value["name"])): str(value["found"])
        for value in trial.graded
        if not value["why"] and value["found"] not in ("missing", "NaN", "Infinity", "-Infinity")
    }


def agree(one: dict[tuple[str, str], str], other: dict[tuple[str, str], str]) -> bool:
    return one.keys() == other.keys() and all(are_close(one[name], other[name]) for name in one)


def are_close(one: str, other: str) -> bool:
    try:
        return one == other or isclose(float(one), float(other), rel_tol=AGREEMENT)
    except ValueError:
        return False


def repeat_lines(group: Group, chosen_epochs: Mapping[str, int] | None = None) -> Iterator[str]:
    """One line for pass@k, one for the trials chosen by execution or, by `chosen_epochs`, by the model."""
    if found := pass_at(group):
        last, tasks = found[-1], len(by_task(group.valid))
        values = [*(f"pass@{one.k} {one.value:.3f}" for one in found), f"pass^{last.k} {last.all_of_k:.3f}"]
        of = "" if last.tasks == tasks else f"{last.tasks} of "
        yield f"{'  '.join(values)} (over {of}{counted(tasks, 'task')}){cost_of(group)}"
    if (chosen := chosen_share(group)) is not None:
        yield f"chosen by execution: {chosen:.3f}"
    epochs = chosen_epochs or {}
    by_model = weighted_mean(
        (float(one.solved), one.weight) for one in group.valid if epochs.get(one.id) == one.epoch
    )
    if by_model is not None:
        yield f"chosen by the model: {by_model:.3f}"


def cost_of(group: Group) -> str:
    """What one trial of a task costs, and what all of them do."""
    costs = [[one.cost_usd for one in trials if one.cost_usd is not None] for trials in by_task(group.valid)]
    known = [costs_of_task for costs_of_task in costs if costs_of_task]
    if not known:
        return ""
    one = sum(sum(costs) / len(costs) for costs in known) / len(known)
    whole = sum(map(sum, known)) / len(known)
    return f"; ${one:.4f} a task for one, ${whole:.4f} for all"
