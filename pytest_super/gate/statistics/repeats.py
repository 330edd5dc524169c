"""What the best or the worst of k trials of a task yields, from all its trials.

With values that are 1 (solved) or 0, the best of k is pass@k (Chen et al. 2021, arXiv 2107.03374), and the
worst of k is pass^k (Yao et al. 2024, arXiv 2406.12045). Both are unbiased: means over all choices of k.
"""

from collections.abc import Sequence
from math import comb, fsum


def best_of(values: Sequence[float], k: int) -> float:
    """The expected largest of k values; k is at most their number."""
    return 0.0 - worst_of([-value for value in values], k)


def worst_of(values: Sequence[float], k: int) -> float:
    """The expected smallest of k values; k is at most their number."""
    ascending = sorted(values)
    count = len(ascending)
    # Of the choices in which a value is the smallest, the others are among those after it.
    return fsum(value * comb(count - place, k - 1) for place, value in enumerate(ascending, 1)) / comb(
        count, k
    )
