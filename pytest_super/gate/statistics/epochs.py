"""How many epochs each task of a comparison needs, by the noise of the baseline's trials alone.

Epochs by the candidate's own results would turn chance into verdicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

import numpy
from scipy.special import ndtr, ndtri

from pytest_super.gate.statistics.bounds import LEVEL, quantile_of
from pytest_super.gate.statistics.looks import confidences
from pytest_super.gate.statistics.samples import Numbers, sample_of, shares_of
from pytest_super.gate.statistics.variance import noise_of, noises_of, widening


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The schedule of one set. A look comes after each epoch from the least number on."""

    epochs: list[int]
    """The most epochs of each task."""
    least: int
    """The epochs before the first look."""
    variances: list[float]
    """Of the difference, at each look."""
    is_enough: bool
    """Whether an unchanged agent passes by the last look with the chance that was asked for."""

    @property
    def fractions(self) -> list[float]:
        """The part of the last look's information that each look has."""
        return [self.variances[-1] / one for one in self.variances]

    def confidences(self, level: float = LEVEL) -> list[float]:
        """The confidences of a one-sided bound at each look."""
        return confidences(self.fractions, level)

    def expected(self, margin: float) -> list[float]:
        """The epochs of each task to expect of an agent that has not changed."""
        deviations = numpy.sqrt(self.variances)
        passes = ndtr(margin / deviations - ndtri(self.confidences()))
        # Whether a further epoch begins, which it does unless one of the looks before has decided.
        begins = [1.0] * self.least + list(1 - numpy.maximum.accumulate(passes))
        return [fsum(begins[:epochs]) for epochs in self.epochs]


def schedule(
    baseline: Sequence[Sequence[float]],
    weights: Sequence[float],
    *,
    least: int,
    most: int,
    margin: float,
    pass_chance: float,
) -> Schedule:
    """Plan no more epochs than excluding a drop of `margin` needs, and `least` to `most` a task.

    `pass_chance` is how often the last look shall exclude it, if the agent has not changed.
    """
    run, shares = sample_of(baseline), shares_of(weights)
    noises = widening(shares) * noises_of(run, shares)
    quantiles = quantile_of(LEVEL, run.counts.sum()) + quantile_of(pass_chance, run.counts.sum())
    for top in range(least, most + 1):
        epochs = allocation(noises, shares, least, top)
        is_enough = quantiles * sqrt(noise_of(run.counts, epochs, shares, noises)) <= margin
        if is_enough:
            break
    by_look = [
        float(noise_of(run.counts, numpy.minimum(epochs, look), shares, noises))
        for look in range(least, int(epochs.max()) + 1)
    ]
    return Schedule(epochs=[int(one) for one in epochs], least=least, variances=by_look, is_enough=is_enough)


def allocation(noises: Numbers, shares: Numbers, least: int, top: int) -> Numbers:
    """Epochs in proportion to each task's part in the error (Neyman 1934), `top` for the largest."""
    parts = shares * numpy.sqrt(noises)
    # Rounded first, because of the last bits of the quotient.
    epochs: Numbers = numpy.maximum(least, numpy.ceil(numpy.round(top * parts / parts.max(), 6)))
    return epochs
