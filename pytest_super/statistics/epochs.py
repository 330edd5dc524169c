"""How many epochs each task of a comparison needs, by the noise of the baseline's trials alone.

Epochs by the candidate's own results would turn chance into verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.statistics.difference import (
    LEVEL,
    PRIOR_VARIANCE,
    Variance,
    moderated,
    per_trial,
    pooled,
    quantile,
    shares_of,
    variance,
)
from pytest_super.statistics.looks import confidences

if TYPE_CHECKING:
    from collections.abc import Sequence

# How often the last look decides, if the agent has not changed.
DECIDES = 0.95


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Of one set. The looks come after each epoch from the least number on."""

    epochs: list[int]
    """The most epochs of each task."""
    fractions: list[float]
    """The part of the last look's information that each look has."""

    def confidences(self, level: float = LEVEL) -> list[float]:
        """Of a one-sided bound at each look."""
        return confidences(self.fractions, level)


def schedule(
    baseline: Sequence[Sequence[float]], weights: Sequence[float], *, least: int, most: int, margin: float
) -> Schedule:
    """With no more epochs than excluding a drop of `margin` needs, and between `least` and `most` a task."""
    noises = noises_of(baseline)
    shares = shares_of(weights)
    counts = [len(values) for values in baseline]
    for top in range(least, most + 1):
        epochs = allocation(noises, shares, least, top)
        error = sqrt(per_trial(zip(counts, epochs, strict=True), shares, noises))
        if (quantile(LEVEL, sum(counts)) + quantile(DECIDES, sum(counts))) * error <= margin:
            break
    by_look = [
        per_trial(
            [(before, min(one, look)) for before, one in zip(counts, epochs, strict=True)], shares, noises
        )
        for look in range(least, max(epochs) + 1)
    ]
    return Schedule(epochs=epochs, fractions=[by_look[-1] / one for one in by_look])


def noises_of(baseline: Sequence[Sequence[float]]) -> list[float]:
    """The variance of each task's trials, with the mean that the comparison will expect."""
    alone = [noise(values) for values in baseline]
    scale = moderated(pooled(baseline), PRIOR_VARIANCE).value / fmean(alone)
    return [scale * one for one in alone]


def noise(values: Sequence[float]) -> float:
    """Of one task, whose few trials tell little, so the prior variance counts, too."""
    own = Variance(value=variance(values) if len(values) > 1 else 0.0, freedom=len(values) - 1)
    return moderated(own, PRIOR_VARIANCE).value


def allocation(noises: Sequence[float], shares: Sequence[float], least: int, top: int) -> list[int]:
    """Epochs in proportion to each task's part in the error (Neyman 1934), `top` for the largest."""
    parts = [share * sqrt(noise) for share, noise in zip(shares, noises, strict=True)]
    # Rounded first, because of the last bits of the quotient.
    return [max(least, ceil(round(top * part / max(parts), 6))) for part in parts]
