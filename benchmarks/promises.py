"""Whether what a run promises before its first trial holds, by simulation of the verdicts.

Usage: python benchmarks/promises.py [--small] [--runs N]

Each simulated run has a baseline of its own, and is planned by it: how often does an agent that is lower by
the drop that is called detectable have the verdict `regressed` (promised: 80 %), and how often does one that
is unchanged pass? Prints a Markdown table. Fails if more is promised than is kept, by
more than 8 points.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy
from coverage import MARGIN, Cell, Suite, percent, rates_of, table

from pytest_super.gate.difference import PASS, REGRESSED, difference, verdict
from pytest_super.gate.planning import POWER, power
from pytest_super.gate.samples import Pair, sample_of

if TYPE_CHECKING:
    from coverage import Numbers

MOST_MISSED = 0.1
SUITES = [Suite(f"mean {mean}", mean) for mean in (0.17, 0.45, 0.85)]
DESIGNS = [
    (12, 10, 3),
    (45, 1, 1),
    (45, 3, 3),
    (45, 10, 1),
    (45, 10, 3),
    (45, 10, 10),
    (152, 3, 3),
    (152, 10, 10),
]


@dataclass(frozen=True)
class Row:
    cell: Cell
    detectable: float | None
    """The mean over the runs that had one."""
    found: float
    promised: float
    passes: float


def simulate(cell: Cell, runs: int) -> Row:
    random = numpy.random.default_rng([*cell.suite.name.encode(), cell.tasks, cell.baseline, cell.candidate])
    drops, found, promised, passes = [], [], [], []
    for rates in rates_of(cell, runs, random):
        baseline = values(random, rates, cell.baseline)
        told = power(sample_of(baseline), [cell.candidate] * cell.tasks, MARGIN)
        promised.append(told.passes_unchanged)
        passes.append(verdict_of(baseline, values(random, rates, cell.candidate)) == PASS)
        if told.detectable is not None and told.detectable <= rates.mean():
            lower = rates * (1 - told.detectable / rates.mean())
            drops.append(told.detectable)
            found.append(verdict_of(baseline, values(random, lower, cell.candidate)) == REGRESSED)
    return Row(cell, fmean(drops) if drops else None, fmean(found or [POWER]), fmean(promised), fmean(passes))


def values(random: numpy.random.Generator, rates: Numbers, epochs: int) -> list[list[float]]:
    solved: list[list[float]] = (random.random((len(rates), epochs)) < rates[:, None]).astype(float).tolist()
    return solved


def verdict_of(baseline: list[list[float]], candidate: list[list[float]]) -> str:
    pairs = [Pair(baseline=old, candidate=new) for old, new in zip(baseline, candidate, strict=True)]
    return verdict(difference(pairs), MARGIN)


def line(row: Row) -> list[str]:
    cell = row.cell
    drop = "none" if row.detectable is None else f"{100 * row.detectable:.1f} points"
    found = "" if row.detectable is None else percent(row.found)
    facts = [cell.suite.name, str(cell.tasks), f"{cell.baseline} / {cell.candidate}"]
    return [*facts, drop, found, percent(row.promised), percent(row.passes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="50 runs of each suite of 12 tasks")
    parser.add_argument("--runs", type=int, default=1000)
    given = parser.parse_args()
    designs, runs = (DESIGNS[:1], 50) if given.small else (DESIGNS, given.runs)
    rows = [simulate(Cell(suite, n, 1, *epochs), runs) for suite in SUITES for n, *epochs in designs]
    heads = ["suite", "tasks", "epochs", "detectable", "regressed at it", "promised passes", "passes"]
    print(table(heads, list(map(line, rows))))
    missed = max(max(POWER - row.found, row.promised - row.passes) for row in rows)
    print(f"promised and not kept: at most {100 * missed:.1f} points")
    if not given.small and missed > MOST_MISSED:
        sys.exit("the promises do not hold")


if __name__ == "__main__":
    main()
