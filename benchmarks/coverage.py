"""How often verdicts and bounds of a comparison are wrong, by simulation of runs whose true values are known.

Usage: python benchmarks/coverage.py [--small] [--runs N] [--all]

A cell is a suite of tasks, how many they are, the weight of a ninth of them, and the epochs of baseline and
candidate. Prints the worst cells by number of tasks and epochs (or every cell), what is found in the suite
with a mean of 0.45, and how often an interval of the mean is right.
Fails if in more than 6.5 % of a cell's runs an unchanged agent is called worse, or one that is 10 points
lower passes, or if intervals of 90 % have the true value in less than 88 % of them. Takes seconds with
--small, else about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any

import numpy
from numpy.typing import NDArray

from pytest_super.gate.difference import (
    PASS,
    REGRESSED,
    Difference,
    chance_of_drop,
    difference,
    difference_of,
    verdict,
)
from pytest_super.gate.samples import LEVEL, Pair, Sample
from pytest_super.report.page.interval import TaskMean, general_mean

Numbers = NDArray[numpy.float64]

TASKS, EPOCHS = (3, 6, 12, 45, 152), ((1, 1), (3, 1), (10, 1), (3, 3), (10, 3), (10, 10))
WEIGHTS, CORRELATIONS = (1, 2, 10), (0.3, 0.5, 0.7)
# Of the interval of the mean.
MEANS = (0.45, 0.9)
MARGIN, DROP = 0.10, 0.10
# What decides whether the statistics hold.
MOST_WRONG, LEAST_COVERAGE = 0.07, 0.87
# The correlation of the rates of tasks of one repository, of which each has three.
REPOSITORY = 0.3
# So many runs are simulated at once.
AT_ONCE = 2000
# The share of trials that end with an error, in the suite with errors: some of those that would have failed.
ERRORS = 0.045
# So many runs of a cell are also decided one by one, as a gate does.
CHECKED = 3


@dataclass(frozen=True)
class Suite:
    name: str
    mean: float = 0.5
    """Of rates from a beta distribution, such that two trials of a task have a correlation of 0.5."""
    is_half_certain: bool = False
    """Half of the tasks have a rate of 0.5; the others are always solved, or never."""
    is_noisy_where_heavy: bool = False
    """Only the tasks with weights have a rate of 0.5; the others are always solved, or never."""
    parts: int = 1
    """A trial's value is the share of so many parts that it has solved."""
    has_errors: bool = False


SUITES = [
    *(Suite(f"mean {mean}", mean) for mean in (0.17, 0.45, 0.85, 0.92)),
    Suite("half certain", is_half_certain=True),
    Suite("noisy where heavy", is_noisy_where_heavy=True),
    Suite("mean 0.45, fractional", 0.45, parts=4),
    Suite("mean 0.92, fractional", 0.92, parts=4),
    Suite("mean 0.45, errors", 0.45, has_errors=True),
]


@dataclass(frozen=True)
class Cell:
    suite: Suite
    tasks: int
    weight: float
    baseline: int
    candidate: int

    @property
    def heavy(self) -> int:
        return max(1, self.tasks // 9)

    @property
    def shares(self) -> Numbers:
        weights: Numbers = numpy.array([self.weight] * self.heavy + [1.0] * (self.tasks - self.heavy))
        return weights / sum(weights)


@dataclass(frozen=True)
class Row:
    cell: Cell
    false_alarms: float
    false_passes: float
    passes: float
    found: float
    coverage: float
    is_refused: bool


def simulate(cell: Cell, runs: int) -> Row:
    facts = [*cell.suite.name.encode(), cell.tasks, int(cell.weight), cell.baseline, cell.candidate]
    random = numpy.random.default_rng(facts)
    parts = [part(cell, min(AT_ONCE, runs - done), random) for done in range(0, runs, AT_ONCE)]
    return Row(cell, *(fmean(values) for values in zip(*parts, strict=True)))  # type: ignore[arg-type]


def part(cell: Cell, runs: int, random: numpy.random.Generator) -> tuple[float, ...]:
    rates, shares = rates_of(cell, runs, random), cell.shares
    # In all tasks by one factor, so that the mean falls by the whole drop. Where it cannot, no pass is wrong.
    means = rates @ shares
    lower = rates * numpy.maximum(0.0, 1 - DROP / means)[:, None]
    falls = means >= DROP
    baseline = sample(cell, rates, cell.baseline, random)
    same = sample(cell, rates, cell.candidate, random)
    worse = sample(cell, lower, cell.candidate, random)
    dropped = difference_of_runs(cell, baseline, worse)
    if cell.suite.parts == 1:
        check(cell, baseline, worse, dropped)
    passes, alarms = decided_with_errors(cell, baseline, same, random)
    missed, found = decided_with_errors(cell, baseline, worse, random)
    low, high = dropped.bounds()
    true = (lower - rates) @ shares
    # A bound of floats can miss by the last bit what it equals.
    covered = (low <= true + 1e-12) & (true <= high + 1e-12)
    shares_of_runs = (alarms, missed & falls, passes, found, covered)
    return (*(float(one.mean()) for one in shares_of_runs), dropped.is_small)


def rates_of(cell: Cell, runs: int, random: numpy.random.Generator) -> Numbers:
    if cell.suite.is_half_certain:
        return numpy.broadcast_to(numpy.resize([0.5, 0.0, 0.5, 1.0], cell.tasks), (runs, cell.tasks))
    if cell.suite.is_noisy_where_heavy:
        rates = numpy.resize([0.0, 1.0], cell.tasks)
        rates[: cell.heavy] = 0.5
        return numpy.broadcast_to(rates, (runs, cell.tasks))
    return beta(random, numpy.full((runs, cell.tasks), cell.suite.mean), 0.5)


def beta(random: numpy.random.Generator, means: Numbers, correlation: float) -> Numbers:
    """Rates with these means, of which two trials each have the given correlation."""
    spread = (1 - correlation) / correlation
    rates = random.beta(means * spread, (1 - means) * spread)
    # A rate of exactly 0 or 1 would have no beta distribution around it.
    return numpy.clip(rates, 1e-6, 1 - 1e-6)


def sample(cell: Cell, rates: Numbers, epochs: int, random: numpy.random.Generator) -> Sample:
    """The trials of several runs."""
    counts = numpy.full(cell.tasks, float(epochs))
    if cell.suite.parts == 1:
        means = random.binomial(counts.astype(int), rates) / counts
        squares = means
    else:
        values = random.binomial(cell.suite.parts, rates[..., None], (*rates.shape, epochs))
        means = values.mean(-1) / cell.suite.parts
        squares = (values**2).mean(-1) / cell.suite.parts**2
    variances = (squares - means**2) * counts / numpy.maximum(counts - 1, 1)
    return Sample(counts=counts, means=means, squares=squares, variances=variances, shares=cell.shares)


def decided_with_errors(
    cell: Cell, baseline: Sample, candidate: Sample, random: numpy.random.Generator
) -> tuple[NDArray[numpy.bool_], NDArray[numpy.bool_]]:
    """Which runs pass, and which have regressed, whatever the trials with errors would have shown."""
    sides = [(baseline, candidate)]
    if cell.suite.has_errors:
        sides = [(better(cell, baseline, random), candidate), (baseline, better(cell, candidate, random))]
    passes, regressed = zip(*(decided(difference_of_runs(cell, *one)) for one in sides), strict=True)
    return numpy.logical_and.reduce(passes), numpy.logical_and.reduce(regressed)


def better(cell: Cell, run: Sample, random: numpy.random.Generator) -> Sample:
    """The run if its errors, which hit only trials that would have failed, would have succeeded."""
    solved = numpy.round(run.means * run.counts)
    errors = random.binomial((run.counts - solved).astype(int), ERRORS / (1 - cell.suite.mean))
    means = (solved + errors) / run.counts
    variances = (means - means**2) * run.counts / numpy.maximum(run.counts - 1, 1)
    return Sample(counts=run.counts, means=means, squares=means, variances=variances, shares=run.shares)


def decided(found: Difference) -> tuple[NDArray[numpy.bool_], NDArray[numpy.bool_]]:
    """Which runs pass, and which have regressed, as `verdict` decides for one."""
    low, high = map(numpy.asarray, found.bounds())
    passes = (low > -MARGIN) & (not found.is_small)
    is_worse = numpy.asarray(found.exact) <= 1 - LEVEL if found.is_small else high < 0
    return passes, ~passes & is_worse


def difference_of_runs(cell: Cell, baseline: Sample, candidate: Sample) -> Difference:
    """Those of several runs, with the exact test where there are few trials, which are solved or not."""
    found = difference_of(baseline, candidate)
    if cell.suite.parts > 1 or not found.has_few:
        return found
    runs = range(len(baseline.means))
    exact: Any = numpy.array([chance_of_drop(pairs_of(cell, baseline, candidate, run)) for run in runs])
    return replace(found, exact=exact)


def pairs_of(cell: Cell, baseline: Sample, candidate: Sample, run: int) -> list[Pair]:
    return [
        Pair(baseline=before, candidate=after, weight=float(share))
        for before, after, share in zip(
            trials(baseline, run), trials(candidate, run), cell.shares, strict=True
        )
    ]


def check(cell: Cell, baseline: Sample, candidate: Sample, found: Difference) -> None:
    """The first runs have the verdicts that a gate would find in their trials."""
    passes, regressed = decided(found)
    for run in range(CHECKED):
        one = verdict(difference(pairs_of(cell, baseline, candidate, run)), MARGIN)
        assert (one == PASS, one == REGRESSED) == (bool(passes[run]), bool(regressed[run])), cell


def trials(sample: Sample, run: int) -> Iterator[list[float]]:
    for count, mean in zip(sample.counts, sample.means[run], strict=True):
        solved = round(count * mean)
        yield [1.0] * solved + [0.0] * (round(count) - solved)


def general_coverage(tasks: int, epochs: int, mean: float, largest: int, runs: int) -> float:
    """How often the interval of the mean has that of the repositories from which tasks are drawn.

    Each repository has three tasks, but the first `largest`; of few tasks each is alone in one.
    """
    random = numpy.random.default_rng([tasks, epochs, int(100 * mean), largest])
    places = numpy.arange(tasks)
    repositories = numpy.maximum(0, 1 + (places - largest) // 3) if tasks > 6 else places
    right = 0
    for _ in range(runs):
        centers = beta(random, numpy.full(tasks, mean), REPOSITORY)[repositories]
        means = random.binomial(epochs, beta(random, centers, 0.5)) / epochs
        found = general_mean(
            [
                TaskMean(value=float(value), cluster=str(cluster), trials=epochs)
                for value, cluster in zip(means, repositories, strict=True)
            ]
        )
        right += found.low <= mean + 1e-12 and found.high + 1e-12 >= mean
    return right / runs


def cells(tasks: Sequence[int]) -> list[Cell]:
    facts = product(SUITES, tasks, WEIGHTS, EPOCHS)
    return [Cell(suite, n, weight, *epochs) for suite, n, weight, epochs in facts]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---:|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), ""])


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def described(cell: Cell) -> str:
    return f"{cell.suite.name}, weight {cell.weight:g}"


def worst_of(rows: Sequence[Row]) -> list[str]:
    decided = [row for row in rows if not row.is_refused]
    alarm = max(decided, key=lambda row: row.false_alarms)
    missed = max(decided, key=lambda row: row.false_passes)
    cell = alarm.cell
    facts = [str(cell.tasks), f"{cell.baseline} / {cell.candidate}", percent(alarm.false_alarms)]
    facts += [described(alarm.cell), percent(missed.false_passes), described(missed.cell)]
    return [*facts, str(len(rows) - len(decided))]


def facts_of(row: Row) -> list[str]:
    cell = row.cell
    facts = [str(cell.tasks), f"{cell.baseline} / {cell.candidate}"]
    if row.is_refused:
        return [*facts, *["refused"] * 5]
    return [*facts, *map(percent, shares_of_row(row))]


def shares_of_row(row: Row) -> list[float]:
    return [row.false_alarms, row.false_passes, row.passes, row.found, row.coverage]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="300 runs of each cell of 6 tasks")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--all", action="store_true", help="print every cell")
    given = parser.parse_args()
    runs, tasks = (300, (6,)) if given.small else (given.runs, TASKS)
    rows = [simulate(cell, runs) for cell in cells(tasks)]
    shares = ["false alarms", "passes 10 points", "passes unchanged", "finds 10 points", "interval"]
    if given.all:
        print(table(["cell", "tasks", "epochs", *shares], [[described(r.cell), *facts_of(r)] for r in rows]))
    heads = ["tasks", "epochs", "most false alarms", "in", "most false passes", "in", "refused"]
    groups = [
        [row for row in rows if (row.cell.tasks, row.cell.baseline, row.cell.candidate) == (n, *epochs)]
        for n, epochs in product(tasks, EPOCHS)
    ]
    print(table(heads, [worst_of(group) for group in groups if not all(row.is_refused for row in group)]))
    usual = [row for row in rows if row.cell.suite == SUITES[1] and row.cell.weight == 1]
    print(table(["tasks", "epochs", *shares], [facts_of(row) for row in usual]))
    general = [
        (n, epochs, mean, largest, general_coverage(n, epochs, mean, largest, runs // 5))
        for n, epochs, mean, largest in product(
            (6,) if given.small else (6, 45, 152), (1, 3, 10), MEANS, (3, 12)
        )
    ]
    lines = [[*map(str, facts), percent(share)] for *facts, share in general]
    print(table(["tasks", "epochs", "mean", "largest repository", "interval of the mean"], lines))
    judged = [row for row in rows if not row.is_refused]
    wrong = max(max(row.false_alarms, row.false_passes) for row in judged)
    coverage = min([row.coverage for row in judged] + [share for *_, share in general])
    print(f"{len(rows)} cells: most wrong verdicts {percent(wrong)}, least coverage {percent(coverage)}")
    # In few runs chance alone is larger than what is left to the bounds.
    if not given.small and (wrong > MOST_WRONG or coverage < LEAST_COVERAGE):
        sys.exit("the statistics do not hold")


if __name__ == "__main__":
    main()
