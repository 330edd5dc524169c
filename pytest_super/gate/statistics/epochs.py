"""How many epochs each task of a comparison needs, by the noise of the baseline's trials alone.

Epochs by the candidate's own results would turn chance into verdicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy

from pytest_super.gate.statistics.bounds import LEVEL, quantile_of
from pytest_super.gate.statistics.looks import confidences
from pytest_super.gate.statistics.samples import Numbers, sample_of, shares_of
from pytest_super.gate.statistics.variance import noise_of, noises_of

# How often the last look decides, if the agent has not changed.
DECIDES = 0.95


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The schedule of one set. A look comes after each epoch from the least number on."""

    epochs: list[int]
    """The most epochs of each task."""
    fractions: list[float]
    """The part of the last look's information that each look has."""

    def confidences(self, level: float = LEVEL) -> list[float]:
        """The confidences of a one-sided bound at each look."""
        return confidences(self.fractions, level)


def schedule(
    baseline: Sequence[Sequence[float]], weights: Sequence[float], *, least: int, most: int, margin: float
) -> Schedule:
    """Plan no more epochs than excluding a drop of `margin` needs, and `least` to `most` a task."""
    run, shares = sample_of(baseline), shares_of(weights)
    noises = noises_of(run, shares)
    quantiles = quantile_of(LEVEL, run.counts.sum()) + quantile_of(DECIDES, run.counts.sum())
    for top in range(least, most + 1):
        epochs = allocation(noises, shares, least, top)
        if quantiles * sqrt(noise_of(run.counts, epochs, shares, noises)) <= margin:
            break
    by_look = [
        float(noise_of(run.counts, numpy.minimum(epochs, look), shares, noises))
        for look in range(least, int(epochs.max()) + 1)
    ]
    return Schedule(epochs=[int(one) for one in epochs], fractions=[by_look[-1] / one for one in by_look])


def allocation(noises: Numbers, shares: Numbers, least: int, top: int) -> Numbers:
    """Epochs in proportion to each task's part in the error (Neyman 1934), `top` for the largest."""
    parts = shares * numpy.sqrt(noises)
    # Rounded first, because of the last bits of the quotient.
    epochs: Numbers = numpy.maximum(least, numpy.ceil(numpy.round(top * parts / parts.max(), 6)))
    return epochs
