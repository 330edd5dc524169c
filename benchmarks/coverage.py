"""How often the bounds of a comparison are right, by simulation of runs whose true values are known.

Usage: python benchmarks/coverage.py [--small] [--runs N] [--mean RATE]

Each task has a rate at which it is solved, drawn from a beta distribution with a mean of 0.45 (--mean), such
that trials of a task have the given correlation. Prints a Markdown table, and fails if an unchanged agent is
called worse, or one that is 10 points lower passes, in more than 6 % of the runs of a row, or if intervals of
90 % have the true value in less than 88 % of them.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

import numpy

from pytest_super.statistics.decision import PASS, REGRESSED, verdict
from pytest_super.statistics.difference import Pair, difference
from pytest_super.statistics.mean import TaskMean, general_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

TASKS, EPOCHS, CORRELATIONS = (6, 45, 152), (1, 3, 5, 10), (0.3, 0.5, 0.7)
MARGIN, DROP = 0.10, 0.10
# What decides whether the statistics hold.
MOST_WRONG, LEAST_COVERAGE = 0.06, 0.88
# The correlation of the rates of tasks of one repository, of which each has three.
REPOSITORY = 0.3


@dataclass(frozen=True)
class Cell:
    tasks: int
    baseline: int
    candidate: int
    correlation: float
    mean: float
    runs: int


@dataclass(frozen=True)
class Row:
    cell: Cell
    false_alarms: float
    passes: float
    found: float
    missed: float
    coverage: float
    general_coverage: float


def simulate(cell: Cell) -> Row:
    random = numpy.random.default_rng(
        [cell.tasks, cell.baseline, cell.candidate, int(100 * cell.correlation)]
    )
    unchanged, covered, general, found, missed = [], [], [], [], []
    for _ in range(cell.runs):
        repositories = numpy.arange(cell.tasks) // (3 if cell.tasks > 6 else 1)
        centers = beta(random, numpy.full(cell.tasks, cell.mean), REPOSITORY)[repositories]
        rates = beta(random, centers, cell.correlation)
        baseline = random.random((cell.tasks, cell.baseline)) < rates[:, None]
        same = random.random((cell.tasks, cell.candidate)) < rates[:, None]
        # In all tasks by one factor, so that the mean falls by the whole drop.
        lower = rates * max(0.0, 1 - DROP / float(rates.mean()))
        worse = random.random((cell.tasks, cell.candidate)) < lower[:, None]
        unchanged.append(decided(baseline, same))
        drop = difference(pairs_of(baseline, worse))
        after = verdict(drop, MARGIN)
        found.append(after == REGRESSED)
        missed.append(after == PASS)
        covered.append(includes(drop.bounds(), float((lower - rates).mean())))
        interval = general_mean(
            [
                TaskMean(value=float(value), cluster=str(cluster), trials=cell.candidate)
                for value, cluster in zip(same.mean(axis=1), repositories, strict=True)
            ]
        )
        general.append(includes((interval.low, interval.high), cell.mean))
    return Row(
        cell,
        false_alarms=fmean(one == REGRESSED for one in unchanged),
        passes=fmean(one == PASS for one in unchanged),
        found=fmean(found),
        missed=fmean(missed),
        coverage=fmean(covered),
        general_coverage=fmean(general),
    )


def beta(
    random: numpy.random.Generator, means: NDArray[numpy.float64], correlation: float
) -> NDArray[numpy.float64]:
    """Rates with these means, of which two trials each have the given correlation."""
    spread = (1 - correlation) / correlation
    rates = random.beta(means * spread, (1 - means) * spread)
    # A rate of exactly 0 or 1 would have no beta distribution around it.
    return numpy.clip(rates, 1e-6, 1 - 1e-6)


def decided(baseline: NDArray[numpy.bool_], candidate: NDArray[numpy.bool_]) -> str:
    return verdict(difference(pairs_of(baseline, candidate)), MARGIN)


def pairs_of(baseline: NDArray[numpy.bool_], candidate: NDArray[numpy.bool_]) -> list[Pair]:
    rows = zip(baseline.astype(float).tolist(), candidate.astype(float).tolist(), strict=True)
    return [Pair(baseline=before, candidate=after) for before, after in rows]


def includes(bounds: tuple[float, float], value: float) -> bool:
    # A bound of floats can miss by the last bit what it equals.
    return bounds[0] <= value + 1e-12 and value <= bounds[1] + 1e-12


def cells(runs: int, mean: float) -> list[Cell]:
    epochs = [(one, one) for one in EPOCHS] + [(10, 1), (10, 3)]
    return [Cell(n, *both, rho, mean, runs) for n, both, rho in product(TASKS, epochs, CORRELATIONS)]


def table(rows: list[Row]) -> str:
    heads = ["tasks", "epochs", "correlation", "false alarms", "passes unchanged", "finds 10 points"]
    heads += ["passes 10 points", "interval of the difference", "interval of the mean"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---:|' * len(heads)}"]
    for row in rows:
        cell = row.cell
        shares = [row.false_alarms, row.passes, row.found, row.missed, row.coverage, row.general_coverage]
        values = " | ".join(f"{100 * share:.1f} %" for share in shares)
        lines.append(f"| {cell.tasks} | {cell.baseline} / {cell.candidate} | {cell.correlation} | {values} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="300 runs a row of 6 tasks")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--mean", type=float, default=0.45)
    given = parser.parse_args()
    chosen = cells(300 if given.small else given.runs, given.mean)
    if given.small:
        chosen = [cell for cell in chosen if cell.tasks == min(TASKS)]
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(simulate, chosen))
    print(table(rows))
    wrong = max(max(row.false_alarms, row.missed) for row in rows)
    coverage = min(min(row.coverage, row.general_coverage) for row in rows)
    print(f"\nmost wrong verdicts {100 * wrong:.1f} %, least coverage {100 * coverage:.1f} %")
    # In few runs chance alone is larger than what is left to the bounds.
    if not given.small and (wrong > MOST_WRONG or coverage < LEAST_COVERAGE):
        sys.exit("the statistics do not hold")


if __name__ == "__main__":
    main()
