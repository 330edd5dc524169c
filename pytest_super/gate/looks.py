"""How sure each of several looks at a growing comparison must be, so that all of them together are.

Each look spends a part of the error (Lan and DeMets 1983, doi 10.1093/biomet/70.3.659): little early, most at
the last one, by a power of the information (Kim and DeMets 1987, Biometrika 74, 149-154).
"""

from collections.abc import Sequence
from functools import cache
from math import pow, sqrt

import numpy
from scipy.optimize import brentq
from scipy.special import ndtr

from pytest_super.gate.samples import LEVEL, Numbers

# The smaller, the more is spent early, which saves epochs and finds slightly fewer drops.
EXPONENT = 2.5
# Beyond so many standard deviations there is nothing.
FARTHEST = 8.5
# Points at which a density is known, for Gauss's quadrature.
POINTS = 300
# A look with a smaller error than this decides nothing.
LEAST_ERROR = 1e-12
# A look must add at least this part of the information to that of the look before.
LEAST_MORE = 0.02


def confidences(fractions: Sequence[float], level: float = LEVEL) -> list[float]:
    """The confidence of a one-sided bound at each look, such that any of them is wrong in 1 - `level`.

    `fractions` are the parts of the last look's information (the inverse variance of the difference), which
    rise to 1. Computed by recursive integration (Armitage, McPherson and Rowe 1969, doi 10.2307/2343787).
    A confidence of 1 is that of a look that decides nothing.
    """
    chosen = apart(fractions)
    by_fraction = dict(zip(chosen, confidences_of(tuple(chosen), level), strict=True))
    return [by_fraction.get(fraction, 1.0) for fraction in fractions]


def apart(fractions: Sequence[float]) -> list[float]:
    """The last one, and those before that are far enough from the next."""
    chosen = [fractions[-1]]
    for fraction in reversed(fractions):
        if chosen[0] - fraction >= LEAST_MORE:
            chosen.insert(0, fraction)
    return chosen


@cache
def confidences_of(fractions: tuple[float, ...], level: float) -> list[float]:
    found = []
    # Of the sum of what is observed, where no look has decided yet: points, and their weights.
    places: Numbers = numpy.zeros(1)
    weights: Numbers = numpy.ones(1)
    last, spent = 0.0, 0.0
    for fraction in fractions:
        error = (1 - level) * pow(fraction, EXPONENT)
        bound = bound_of(error - spent, places, weights, sqrt(fraction - last))
        found.append(float(ndtr(bound / sqrt(fraction))))
        places, weights = below(bound, places, weights, fraction, last)
        last, spent = fraction, error
    return found


def bound_of(error: float, places: Numbers, weights: Numbers, step: float) -> float:
    """The bound that the sum crosses with this probability after a step with this standard deviation."""
    if error < LEAST_ERROR:
        return FARTHEST

    def excess(bound: float) -> float:
        return float(weights @ ndtr((places - bound) / step)) - error

    return float(brentq(excess, -FARTHEST, FARTHEST))


@cache
def quadrature() -> tuple[Numbers, Numbers]:
    """Points from -1 to 1, and their weights."""
    nodes, weights = numpy.polynomial.legendre.leggauss(POINTS)
    return nodes, weights


def below(
    bound: float, places: Numbers, weights: Numbers, fraction: float, last: float
) -> tuple[Numbers, Numbers]:
    """The sums below the bound after the step, as points and their weights."""
    nodes, parts = quadrature()
    low, high = -FARTHEST * sqrt(fraction), min(bound, FARTHEST * sqrt(fraction))
    after = low + (high - low) * (nodes + 1) / 2
    variance = fraction - last
    distances = after[:, None] - places[None, :]
    density = numpy.exp(-(distances**2) / (2 * variance)) @ weights / sqrt(2 * numpy.pi * variance)
    return after, density * parts * (high - low) / 2
