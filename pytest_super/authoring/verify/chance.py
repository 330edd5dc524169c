"""Whether numbers of an answer stand in a text by chance.

Any number of three digits stands somewhere in enough other numbers. So it is counted how many others there
are: one that agrees in k digits with a number of the answer does so by chance once in 9 * 10^(k-1), and
several that stand together do so once in the product of that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_super.authoring.verify.numbers import Number
    from pytest_super.authoring.verify.texts import Text
    from pytest_super.authoring.verify.wanted import Hit

# Characters within which numbers stand together.
WINDOW, STEP = 2000, 500
# What chance gives more often than this is no leak.
MOST_CHANCE = 0.1


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Values of the answer that stand together."""

    text: Text
    hits: tuple[Hit, ...]
    """One for each value, those that say most first."""
    neighbours: int
    """Different numbers that stand there, these among them."""


def clusters(text: Text, hits: Sequence[Hit], numbers: Sequence[Number]) -> Iterator[Cluster]:
    """Each hit with those that follow it within WINDOW, but for those of the same value less than STEP after.

    So what lies within WINDOW - STEP is seen together. `numbers` are all of the text; both are in its order.
    """
    places, starts = [number.start for number in numbers], [hit.start for hit in hits]
    # A table may hold one number a million times.
    passed: dict[str, int] = {}
    for index, hit in enumerate(hits):
        if hit.start >= passed.get(hit.name, 0):
            passed[hit.name] = hit.start + STEP
            end = hit.start + WINDOW
            near = numbers[bisect_left(places, hit.start) : bisect_right(places, end)]
            together = best_of_each(hits[index : bisect_right(starts, end)])
            yield Cluster(text=text, hits=together, neighbours=len({number.value for number in near}))


def best_of_each(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    best: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.digits, hit.start)):
        best.setdefault(hit.name, hit)
    return tuple(best.values())


def by_chance(cluster: Cluster, *, values: int, numbers: int) -> float:
    """How many clusters as telling as this one chance gives.

    `values` of the answer were looked for, among so many different `numbers`.
    """
    odds, least = 1.0, float(numbers)
    for count, hit in enumerate(cluster.hits, 1):
        odds *= min(1.0, cluster.neighbours / (9 * 10 ** (hit.digits - 1)))
        least = min(least, comb(values, count) * odds * numbers / cluster.neighbours)
    return least
