"""How often verdicts are wrong if tasks that the baseline never solved are left out, by simulation.

Usage: python benchmarks/never_solved.py [--small] [--runs N]

Of 45 tasks. Prints a Markdown table with what is left out, and the shares of a comparison of all tasks beside
those of one without. Fails if more than 6.5 % of the verdicts of a row in which tasks are left out are wrong.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import numpy
from coverage import DROP, MARGIN, MOST_WRONG, beta, percent, table

from pytest_super.statistics.decision import PASS, REGRESSED, verdict
from pytest_super.statistics.difference import Pair, difference
from pytest_super.statistics.never_solved import never_solved

TASKS = 45
MEANS, BASELINES, EPOCHS = (0.17, 0.25, 0.45), (3, 10, 30), (1, 3, 10)
Trials = list[list[float]]


@dataclass(frozen=True)
class Row:
    mean: float
    baseline: int
    epochs: int
    left_out: float
    whole: list[float]
    """Unchanged agents that have regressed, and agents 10 points lower that pass, and that have regressed."""
    part: list[float]


def simulate(mean: float, before: int, epochs: int, runs: int) -> Row:
    random = numpy.random.default_rng([int(100 * mean), before, epochs])
    left_out, verdicts = [], []
    for _ in range(runs):
        rates = beta(random, numpy.full(TASKS, mean), 0.5)
        lower = rates * max(0.0, 1 - DROP / float(rates.mean()))
        baseline, same, worse = (
            (random.random((TASKS, count)) < one[:, None]).astype(float).tolist()
            for one, count in ((rates, before), (rates, epochs), (lower, epochs))
        )
        found = never_solved(baseline, [1.0] * TASKS, epochs=epochs)
        left_out.append(len(found.tasks) / TASKS)
        short = [without(one, found.tasks, found.value) for one in (same, worse)]
        verdicts.append([decided(baseline, one) for one in (same, worse, *short)])
    columns = list(zip(*verdicts, strict=True))
    return Row(mean, before, epochs, fmean(left_out), wrong(*columns[:2]), wrong(*columns[2:]))


def without(run: Trials, tasks: list[int], value: float) -> Trials:
    return [[value] * len(values) if place in tasks else values for place, values in enumerate(run)]


def decided(baseline: Trials, candidate: Trials) -> str:
    pairs = [Pair(baseline=old, candidate=new) for old, new in zip(baseline, candidate, strict=True)]
    return verdict(difference(pairs), MARGIN)


def wrong(same: tuple[str, ...], worse: tuple[str, ...]) -> list[float]:
    kinds = ((same, REGRESSED), (worse, PASS), (worse, REGRESSED))
    return [found.count(word) / len(found) for found, word in kinds]


def line(row: Row) -> list[str]:
    facts = [f"{row.mean}", f"{row.baseline} / {row.epochs}", percent(row.left_out)]
    return [*facts, *map(percent, row.whole), *map(percent, row.part)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="100 runs with a baseline of ten epochs")
    parser.add_argument("--runs", type=int, default=2000)
    given = parser.parse_args()
    baselines, runs = (BASELINES[1:2], 100) if given.small else (BASELINES, given.runs)
    cells = product(MEANS, baselines, EPOCHS)
    rows = [simulate(mean, before, epochs, runs) for mean, before, epochs in cells]
    heads = ["mean", "epochs", "left out", "false alarms", "passes 10 points", "finds 10 points"]
    print(table([*heads, *(f"{head}, without them" for head in heads[3:])], list(map(line, rows))))
    most = max(max(row.part[:2]) for row in rows if row.left_out)
    print(f"most wrong verdicts without them {percent(most)}")
    if not given.small and most > MOST_WRONG:
        sys.exit("what is left out changes verdicts")


if __name__ == "__main__":
    main()
