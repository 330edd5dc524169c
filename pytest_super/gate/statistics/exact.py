"""Whether few trials of few tasks became worse, by all ways to divide each task's trials between both runs.

At its level whatever the values, where trials are independent (Pitman 1937, doi 10.2307/2984124).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product
from math import comb, fsum

from pytest_super.gate.statistics.samples import Pair

# Sums that are equal to so many digits are taken together: without that, there could be millions.
DIGITS = 4


def chance_of_drop(pairs: Sequence[Pair]) -> float:
    """How likely a difference as low as that of these tasks is, if nothing has changed."""
    whole = fsum(pair.weight for pair in pairs)
    found = fsum(pair.weight * pair.difference for pair in pairs) / whole
    chances = {0.0: 1.0}
    for pair in pairs:
        sums: defaultdict[float, float] = defaultdict(float)
        for (one, chance), (other, its_chance) in product(
            chances.items(), differences_of(pair, pair.weight / whole).items()
        ):
            sums[round(one + other, DIGITS)] += chance * its_chance
        chances = sums
    # What is rounded counts against the drop.
    return fsum(chance for value, chance in chances.items() if value <= found + len(pairs) * 10.0**-DIGITS)


def differences_of(pair: Pair, share: float) -> dict[float, float]:
    """The chance of each difference of one task, times its share, if its trials are divided at random."""
    values = [*pair.baseline, *pair.candidate]
    number, size, total = len(values), len(pair.candidate), fsum(values)
    # By how many are chosen and their sum: the number of ways.
    ways: Counter[tuple[int, float]] = Counter({(0, 0.0): 1})
    for value, times in Counter(values).items():
        further: Counter[tuple[int, float]] = Counter()
        for (chosen, so_far), count in ways.items():
            for more in range(min(times, size - chosen) + 1):
                further[chosen + more, round(so_far + more * value, 9)] += count * comb(times, more)
        ways = further
    chances: dict[float, float] = {}
    for (chosen, so_far), count in ways.items():
        if chosen == size:
            difference = so_far / size - (total - so_far) / (number - size)
            chances[share * difference] = count / comb(number, size)
    return chances
