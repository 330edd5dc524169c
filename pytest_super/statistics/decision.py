"""Better, worse, or cannot tell: what the bounds of a difference say about a margin."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from scipy.special import stdtr

from pytest_super.statistics.difference import (
    LEVEL,
    PRIOR_FREEDOM,
    PRIOR_VARIANCE,
    Difference,
    Pair,
    Variance,
    counts_of,
    difference,
    have_repeats,
    moderated,
    per_trial,
    pooled,
    quantile,
    shares_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict: TypeAlias = Literal["pass", "regressed", "cannot tell"]
PASS: Final = "pass"
REGRESSED: Final = "regressed"
CANNOT_TELL: Final = "cannot tell"
# How often a drop that is called detectable is found.
POWER = 0.8
# More further epochs than these are no advice.
MOST_EPOCHS = 100


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a comparison can find, before its trials run."""

    detectable: float
    """The drop that is found in 80 % of runs."""
    passes_unchanged: float
    """The share of runs in which an agent that has not changed passes."""


def verdict(found: Difference, margin: float, *, pass_level: float = LEVEL, level: float = LEVEL) -> Verdict:
    """`pass` if a drop of `margin` or more can be excluded, else `regressed` if there is a drop for sure.

    `pass_level` and `level` are the confidences at which the one and the other is sure.
    """
    if found.bounds(pass_level)[0] > -margin:
        return PASS
    return REGRESSED if found.bounds(level)[1] < 0 else CANNOT_TELL


def chance_of_no_drop(found: Difference) -> float:
    """The p-value of the difference, one-sided: how likely one as low is if nothing became worse."""
    return float(stdtr(found.variance.freedom, found.value / sqrt(found.variance.value)))


def epochs_to_decide(
    pairs: Sequence[Pair], margin: float, level: float = LEVEL, *, baseline: int = 0
) -> int | None:
    """How many further epochs of the candidate would decide if the means stayed as they are.

    `level` is that of both bounds, `baseline` the least number of the baseline's epochs. None if more than
    MOST_EPOCHS.
    """
    found = difference(pairs)
    shares, counts = shares_of([pair.weight for pair in pairs]), counts_of(pairs)
    of_trial = found.variance.value / per_trial(counts, shares)
    for epochs in range(1, MOST_EPOCHS + 1):
        longer = [(max(before, baseline), candidate + epochs) for before, candidate in counts]
        variance = Variance(
            value=of_trial * per_trial(longer, shares), freedom=found.variance.freedom + epochs * len(pairs)
        )
        later = Difference(value=found.value, variance=variance)
        if verdict(later, margin, pass_level=level, level=level) != CANNOT_TELL:
            return epochs
    return None


def plan(
    baseline: Sequence[Sequence[float]], weights: Sequence[float], *, epochs: Sequence[int], margin: float
) -> Plan:
    """For a candidate with so many epochs of each of the baseline's tasks, and as much noise."""
    shares = shares_of(weights)
    counts = [(len(values), number) for values, number in zip(baseline, epochs, strict=True)]
    of_trial = moderated(pooled(baseline), PRIOR_VARIANCE)
    error = sqrt(of_trial.value * per_trial(counts, shares))
    freedom = PRIOR_FREEDOM + planned_freedom(counts)
    bound = quantile(LEVEL, freedom)
    return Plan(
        detectable=(bound + quantile(POWER, freedom)) * error,
        passes_unchanged=float(stdtr(freedom, margin / error - bound)),
    )


def planned_freedom(counts: Sequence[tuple[int, int]]) -> int:
    """As `difference` will have them."""
    if not have_repeats(counts):
        return len(counts) - 1
    return sum(baseline + candidate - 2 for baseline, candidate in counts)
