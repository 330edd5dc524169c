"""How often verdicts are wrong if trials share luck, or if tasks have unequal epochs, by simulation.

Usage: python benchmarks/shared_luck.py [--small] [--runs N]

Rates are from a beta distribution with a mean of 0.45; an agent that is worse fails each of its successes
with the same chance. The rows are independent trials; tasks whose rate is drawn anew in each run; epochs that
repeat the first; repositories of three tasks (or one of twelve) that fail in an epoch; and noisy tasks with
one trial beside quiet ones with several. Prints the shares of false alarms, of passes of an agent that is 10
points lower, of passes of one that is unchanged, of drops found, and of intervals of 90 % that have the true
value. Fails if more than 7 % of the runs of a row are wrong, or less than 87 % of the intervals are right.
Takes seconds with --small, else about three minutes.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
from coverage import MARGIN, Numbers, beta, decided, percent, table

from pytest_super.gate.difference import difference_of
from pytest_super.gate.samples import Sample, members_of, noise_by_epoch

MOST_WRONG, LEAST_COVERAGE = 0.07, 0.87
MEAN, SPREAD = 0.45, 0.5
LARGEST = 12
SIZES = ((8, 5, 5), (20, 5, 5), (20, 10, 3), (45, 3, 3), (45, 10, 3), (118, 10, 3))
HEADS = ["trials", "tasks", "epochs", "false alarms", "passes 10 points", "passes unchanged"]
HEADS += ["finds 10 points", "interval"]
# So many runs are simulated at once.
AT_ONCE = 1000


@dataclass(frozen=True, kw_only=True)
class Cell:
    name: str
    tasks: int
    baseline: int
    candidate: int
    in_run: float = 0.0
    """The correlation of the trials of a task in one run, beyond its rate."""
    repeated: float = 0.0
    """The chance that an epoch repeats the first."""
    repositories: int = 0
    """The tasks of the first repository; the others have three each."""
    failing: float = 0.0
    """The chance that a repository fails in an epoch."""
    quiet: int = 0
    """Tasks that are always solved and have these epochs; the others have a rate of 0.5 and one trial."""

    @property
    def repository_of(self) -> list[str]:
        if not self.repositories:
            return [str(place) for place in range(self.tasks)]
        return [str(max(0, 1 + (place - self.repositories) // 3)) for place in range(self.tasks)]


def row_of(cell: Cell, runs: int) -> list[float]:
    random = numpy.random.default_rng([*cell.name.encode(), cell.tasks, cell.baseline, cell.candidate])
    parts = [part(cell, min(AT_ONCE, runs - done), random) for done in range(0, runs, AT_ONCE)]
    return [float(column.mean()) for column in map(numpy.concatenate, zip(*parts, strict=True))]


def part(cell: Cell, runs: int, random: numpy.random.Generator) -> list[Any]:
    if cell.quiet:
        rates = numpy.tile(numpy.where(numpy.arange(cell.tasks) < cell.quiet, 1.0, 0.5), (runs, 1))
    else:
        rates = beta(random, numpy.full((runs, cell.tasks), MEAN), SPREAD)
    means = rates.mean(-1)
    # The drop is that of what is seen, after repositories have failed.
    drop = MARGIN / (1 - cell.failing)
    lower = rates * numpy.maximum(0.0, 1 - drop / means)[:, None]
    baseline = sample(cell, rates, cell.baseline, random)
    same, worse = (sample(cell, one, cell.candidate, random) for one in (rates, lower))
    unchanged, dropped = (difference_of(baseline, one) for one in (same, worse))
    (passes, alarms), (missed, found) = decided(unchanged), decided(dropped)
    low, high = unchanged.bounds()
    return [alarms, missed & (means >= drop), passes, found, (low <= 1e-12) & (high >= -1e-12)]


def sample(cell: Cell, rates: Numbers, epochs: int, random: numpy.random.Generator) -> Sample:
    """The trials of several runs of one agent."""
    runs, tasks = rates.shape
    if cell.in_run:
        rates = beta(random, numpy.clip(rates, 1e-6, 1 - 1e-6), cell.in_run)
    values = random.random((runs, tasks, epochs)) < rates[..., None]
    if cell.repeated:
        is_new = random.random(values.shape) >= cell.repeated
        values = numpy.where(is_new, values, values[..., :1])
    members = members_of(cell.repository_of)
    if cell.failing:
        works = random.random((runs, len(members), epochs)) >= cell.failing
        values &= works[:, members.argmax(0), :]
    counts = numpy.full(tasks, float(epochs))
    if cell.quiet:
        counts[cell.quiet :] = 1.0
        values[:, cell.quiet :, 1:] = values[:, cell.quiet :, :1]
    means, shares = values.mean(-1), numpy.full(tasks, 1 / tasks)
    blocks = 0.0
    if cell.repositories:
        blocks = noise_by_epoch(values.astype(float), shares, members)
    variances = (means - means**2) * counts / numpy.maximum(counts - 1, 1)
    return Sample(
        counts=counts, means=means, squares=means, variances=variances, shares=shares, blocks=blocks
    )


def cells() -> Iterator[Cell]:
    for tasks, baseline, candidate in SIZES:
        size = {"tasks": tasks, "baseline": baseline, "candidate": candidate}
        yield Cell(name="independent", **size)
        for correlation in (0.1, 0.3):
            yield Cell(name=f"correlation of {correlation} in a run", in_run=correlation, **size)
    for baseline, candidate in ((3, 3), (10, 3), (10, 10)):
        size = {"tasks": 45, "baseline": baseline, "candidate": candidate}
        yield Cell(name="epochs repeat the first in 30 %", repeated=0.3, **size)
        for largest in (3, LARGEST):
            for failing in (0.0, 0.05, 0.15, 0.3):
                name = f"repositories of 3, the first of {largest}, fail in {failing:.0%} of epochs"
                yield Cell(name=name, repositories=largest, failing=failing, **size)
    for tasks, quiet in ((16, 8), (45, 15)):
        yield Cell(name=f"{quiet} quiet tasks repeated", tasks=tasks, baseline=5, candidate=3, quiet=quiet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="200 runs of each row")
    parser.add_argument("--runs", type=int, default=4000)
    given = parser.parse_args()
    rows = {cell: row_of(cell, 200 if given.small else given.runs) for cell in cells()}
    lines = [
        [cell.name, str(cell.tasks), f"{cell.baseline} / {cell.candidate}", *map(percent, row)]
        for cell, row in rows.items()
    ]
    print(table(HEADS, lines))
    wrong = max(max(row[:2]) for row in rows.values())
    coverage = min(row[-1] for row in rows.values())
    print(f"{len(rows)} rows: most wrong verdicts {percent(wrong)}, least coverage {percent(coverage)}")
    # In few runs chance alone is larger than what is left to the bounds.
    if not given.small and (wrong > MOST_WRONG or coverage < LEAST_COVERAGE):
        sys.exit("the statistics do not hold")


if __name__ == "__main__":
    main()
