"""How often verdicts are wrong, and how often they are found, if candidates are paired with their baselines.

Usage: python benchmarks/paired.py [--small] [--runs N]

A cell is a number of tasks, their mean and weights, the epochs of baseline and candidate, and the share of
trials that a change touches, in all tasks alike or in a few. A trial that is not touched has the outcome of
its partner. The others have their own, with the whole drop in them. Each comparison has its own baseline.

Prints the worst cells by tasks and epochs; what is found with pairs and without, on the same trials; cells in
which pairs find less; drops that are only in the tasks with large weights; and how verdicts of several
comparisons with one baseline depend on the luck in it. Fails if in more than 6.5 % of a cell's runs, and in
more than without pairs, an unchanged agent is called worse or a drop is excluded which is the true one, if
intervals of 90 % have the true value in less than 88 %, or if a cell with enough pairs finds 5 points less
than without pairs. Takes seconds with --small, else about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isnan
from typing import TYPE_CHECKING

import numpy
from coverage import DROP, LEAST_COVERAGE, MARGIN, MOST_WRONG, beta, percent, table

from pytest_super.gate.statistics.bounds import Difference
from pytest_super.gate.statistics.decision import PASS, REGRESSED, is_refused, verdict
from pytest_super.gate.statistics.difference import difference, difference_of
from pytest_super.gate.statistics.pairs import RULE_OF_THREE, Pairs
from pytest_super.gate.statistics.samples import Pair, Sample, shares_of

if TYPE_CHECKING:
    from coverage import Numbers
    from numpy.typing import NDArray

TASKS = (6, 12, 45, 152)
EPOCHS = ((1, 1), (2, 2), (3, 3), (5, 5), (10, 10), (10, 3), (10, 1), (3, 1))
MEANS, WEIGHTS = (0.45, 0.9), (1, 10)
TOUCHED = (0.0, 0.05, 0.1, 0.3, 1.0)
# In each task alike, in a few tasks of which all trials are touched, or only in the tasks with weights.
EVENLY, FEW, HEAVY = "evenly", "few tasks", "heavy tasks"
MOST_LOST = 0.02
# In so many runs is a share measured well enough to be compared.
LEAST_RUNS = 200
# So many runs of a cell are also decided one by one, as a gate does.
CHECKED = 2
# Comparisons with each baseline.
PER_BASELINE = 20
WORST = ["tasks", "epochs", "most false alarms", "unpaired", "in", "most drops excluded", "unpaired", "in"]
WORST += ["least coverage"]
POWER = ["tasks", "epochs", "touched", "passes unchanged, unpaired", "paired"]
POWER += ["finds 10 points, unpaired", "paired"]
LUCK = ["tasks", "epochs", "touched", "lower by", "wrong, unpaired", "in the unluckiest tenth", "deviation"]
LUCK += ["wrong, paired", "in the unluckiest tenth", "deviation"]


@dataclass(frozen=True)
class Kind:
    name: str
    noise: float = 0.0
    """So many of the trials that are not touched have an outcome of their own, as kernels run again."""
    parts: int = 1
    """A trial's value is the share of so many parts that it has solved."""
    has_gaps: bool = False
    """The trials of each third task have no pairs."""


PLAIN = Kind("plain")
KINDS = (PLAIN, Kind("noise", noise=0.03), Kind("fractional", parts=4), Kind("gaps", has_gaps=True))


@dataclass(frozen=True)
class Cell:
    tasks: int
    baseline: int
    candidate: int
    touched: float
    spread: str
    mean: float
    weight: int = 1
    kind: Kind = PLAIN

    @property
    def size(self) -> tuple[int, int, int]:
        return self.tasks, self.baseline, self.candidate

    @property
    def heavy(self) -> int:
        return max(1, self.tasks // 9)

    @property
    def shares(self) -> Numbers:
        return shares_of([float(self.weight)] * self.heavy + [1.0] * (self.tasks - self.heavy))

    @property
    def counts(self) -> Numbers:
        """Of the pairs of each task."""
        found = numpy.full(self.tasks, float(min(self.baseline, self.candidate)))
        if self.kind.has_gaps:
            found[::3] = 0
        return found

    def __str__(self) -> str:
        facts = [f"mean {self.mean}", f"weight {self.weight}", f"touched {self.touched:g} {self.spread}"]
        return ", ".join([*facts, self.kind.name])


@dataclass(frozen=True)
class Found:
    """The shares of a cell's runs, with pairs or without."""

    alarms: float
    """Unchanged, and worse for sure."""
    excluded: float
    """Lower by the margin, or by all that the touched trials can lose, and this drop is excluded."""
    covered: float
    """The less of both."""
    passes: float
    """Unchanged."""
    regressed: float
    """Lower by the margin; nan where too few runs of the simulation can be so."""


@dataclass(frozen=True)
class Row:
    cell: Cell
    with_pairs: Found
    without: Found

    @property
    def lost(self) -> float:
        """How much less is found with pairs."""
        regressed = self.without.regressed - self.with_pairs.regressed
        return max(self.without.passes - self.with_pairs.passes, 0.0 if isnan(regressed) else regressed)

    @property
    def wrong(self) -> float:
        return max(self.with_pairs.alarms, self.with_pairs.excluded)

    @property
    def is_more_wrong(self) -> bool:
        """Than without pairs, on the same trials."""
        return self.wrong > max(self.without.alarms, self.without.excluded)

    @property
    def has_enough_pairs(self) -> bool:
        counts = self.cell.counts
        return bool((RULE_OF_THREE * self.cell.shares / numpy.maximum(counts, 1))[counts > 0].max() < MARGIN)


def simulate(cell: Cell, runs: int) -> Row | None:
    """None if it is refused."""
    name = f"{cell}".encode()
    random = numpy.random.default_rng([*name, cell.tasks, cell.baseline, cell.candidate])
    same, lower = (decided(cell, drop, runs, random) for drop in (0.0, DROP))
    if same is None or lower is None:
        return None
    with_pairs, without = (found_of(*sides) for sides in zip(same, lower, strict=True))
    return Row(cell, with_pairs, without)


def found_of(same: Numbers, lower: Numbers) -> Found:
    return Found(
        alarms=same[3], excluded=lower[2], covered=min(same[4], lower[4]), passes=same[0], regressed=lower[1]
    )


def decided(
    cell: Cell, drop: float, runs: int, random: numpy.random.Generator
) -> tuple[Numbers, Numbers] | None:
    """With pairs and without: pass, regressed, wrong lower bounds, wrong upper ones, and right intervals."""
    rates = beta(random, numpy.full((runs, cell.tasks), cell.mean), 0.5)
    before = outcomes(random, rates, cell.baseline, cell.kind)
    after, true = candidate_of(cell, rates, before, drop, random)
    baseline, candidate, pairs = sample(before), sample(after), pairs_of(cell, before, after)
    found = [difference_of(baseline, candidate, cell.shares, pairs=some) for some in (pairs, None)]
    if is_refused(found[0]):
        return None
    check(cell, before, after, found[0])
    counts = true <= -drop + 1e-9
    return shares_right(found[0], true, counts), shares_right(found[1], true, counts)


def shares_right(found: Difference, true: Numbers, counts: NDArray[numpy.bool_]) -> Numbers:
    """`counts` are the runs whose true difference is the drop: the others say nothing about what is found."""
    low, high = found.bounds()
    passes = numpy.asarray(low) > -MARGIN
    # Where a pass goes first, it is counted as a wrong one.
    regressed = numpy.asarray(high) < 0
    # A bound of floats can miss by the last bit what it equals.
    too_high, too_low = low > true + 1e-12, high < true - 1e-12
    is_known = counts.sum() >= LEAST_RUNS
    verdicts = [(one & counts).sum() / counts.sum() if is_known else numpy.nan for one in (passes, regressed)]
    return numpy.array([*verdicts, too_high.mean(), too_low.mean(), 1 - (too_high | too_low).mean()])


def candidate_of(
    cell: Cell, rates: Numbers, before: Numbers, drop: float, random: numpy.random.Generator
) -> tuple[Numbers, Numbers]:
    """The candidate's trials, and the true differences of the runs."""
    touched = touched_shares(cell, len(rates), random)
    possible = (touched * rates) @ cell.shares
    # In all touched trials by one factor. Where even their failure is less than the drop, they all fail.
    kept = 1 - numpy.minimum(drop / numpy.maximum(possible, 1e-12), 1.0) * (drop > 0)
    lower = rates * kept[:, None]
    shape = (*rates.shape, cell.candidate)
    own = random.random(shape, dtype=numpy.float32) < touched[..., None]
    other = numpy.zeros(shape, dtype=bool)
    if cell.kind.noise:
        other = random.random(shape, dtype=numpy.float32) < cell.kind.noise
    other |= (cell.counts == 0)[:, None]
    other |= numpy.arange(cell.candidate) >= cell.baseline
    partner = numpy.resize(before, shape) if cell.candidate > cell.baseline else before[..., : cell.candidate]
    unchanged = numpy.where(other, outcomes(random, rates, cell.candidate, cell.kind), partner)
    after = numpy.where(own, outcomes(random, lower, cell.candidate, cell.kind), unchanged)
    return after, ((lower - rates) * touched) @ cell.shares


def touched_shares(cell: Cell, runs: int, random: numpy.random.Generator) -> Numbers:
    """Of each task's trials, by run."""
    if cell.spread == EVENLY:
        return numpy.full((runs, cell.tasks), cell.touched)
    if cell.spread == HEAVY:
        return numpy.tile(cell.touched * (numpy.arange(cell.tasks) < cell.heavy), (runs, 1))
    order = random.permuted(numpy.tile(numpy.arange(cell.tasks), (runs, 1)), axis=1)
    return (order < max(1, round(cell.touched * cell.tasks))).astype(float)


def outcomes(random: numpy.random.Generator, rates: Numbers, epochs: int, kind: Kind) -> Numbers:
    shape = (*rates.shape, epochs)
    if kind.parts == 1:
        return (random.random(shape, dtype=numpy.float32) < rates[..., None]).astype(float)
    return random.binomial(kind.parts, rates[..., None], shape) / kind.parts


def sample(values: Numbers) -> Sample:
    epochs = values.shape[-1]
    means, squares = values.mean(-1), (values**2).mean(-1)
    return Sample(
        counts=numpy.full(values.shape[-2], float(epochs)),
        means=means,
        squares=squares,
        variances=(squares - means**2) * epochs / max(epochs - 1, 1),
    )


def pairs_of(cell: Cell, before: Numbers, after: Numbers) -> Pairs:
    paired = min(cell.baseline, cell.candidate)
    differences = after[..., :paired] - before[..., :paired]
    return Pairs(
        counts=cell.counts,
        means=differences.mean(-1),
        squares=(differences**2).mean(-1),
        differing=(differences != 0).mean(-1),
    )


def check(cell: Cell, before: Numbers, after: Numbers, found: Difference) -> None:
    """The first runs have the verdicts that a gate would find in their trials."""
    low, high = map(numpy.asarray, found.bounds())
    for run in range(CHECKED):
        tasks = zip(before[run].tolist(), after[run].tolist(), cell.shares, cell.counts, strict=True)
        one = verdict(
            difference(
                [Pair(baseline=a, candidate=c, weight=float(w), paired=int(m)) for a, c, w, m in tasks]
            ),
            MARGIN,
        )
        bulk = PASS if low[run] > -MARGIN else REGRESSED if high[run] < 0 else "cannot tell"
        assert one == bulk, cell


def cells(tasks: Sequence[int]) -> Iterator[Cell]:
    spreads = [(q, EVENLY) for q in TOUCHED] + [(q, FEW) for q in TOUCHED if 0 < q < 1]
    for n, (before, after), (touched, spread), mean in product(tasks, EPOCHS, spreads, MEANS):
        for weight in WEIGHTS:
            yield Cell(n, before, after, touched, spread, mean, weight)
        for kind in KINDS[1:] if mean == MEANS[0] else KINDS[2:3]:
            yield Cell(n, before, after, touched, spread, mean, kind=kind)


def heavy_cells(tasks: Sequence[int]) -> Iterator[Cell]:
    for n, (before, after), touched, mean in product(tasks, EPOCHS, TOUCHED[2:], MEANS):
        yield Cell(n, before, after, touched, HEAVY, mean, max(WEIGHTS))


def worst_of(rows: Sequence[Row]) -> list[str]:
    alarm = max(rows, key=lambda row: row.with_pairs.alarms)
    excluded = max(rows, key=lambda row: row.with_pairs.excluded)
    covered = min(rows, key=lambda row: row.with_pairs.covered)
    facts = [str(alarm.cell.tasks), f"{alarm.cell.baseline} / {alarm.cell.candidate}"]
    facts += [percent(alarm.with_pairs.alarms), percent(alarm.without.alarms), str(alarm.cell)]
    facts += [percent(excluded.with_pairs.excluded), percent(excluded.without.excluded), str(excluded.cell)]
    return [*facts, percent(covered.with_pairs.covered)]


def by_size(rows: Sequence[Row]) -> Iterator[list[Row]]:
    for n, epochs in product(TASKS, EPOCHS):
        group = [row for row in rows if row.cell.size == (n, *epochs)]
        if group:
            yield group


def power_of(row: Row) -> list[str]:
    cell, pairs, without = row.cell, row.with_pairs, row.without
    facts = [str(cell.tasks), f"{cell.baseline} / {cell.candidate}", f"{cell.touched:.0%}"]
    shares = [without.passes, pairs.passes, without.regressed, pairs.regressed]
    return [*facts, *("" if isnan(share) else percent(share) for share in shares)]


def lost_of(row: Row) -> list[str]:
    return [str(row.cell), f"{row.cell.counts.sum():.0f}", *power_of(row)]


def luck_of(cell: Cell, drop: float, baselines: int) -> list[str]:
    """The verdicts of comparisons that share a baseline, by how much too high or too low that is."""
    random = numpy.random.default_rng([cell.tasks, cell.candidate, int(100 * cell.touched), int(100 * drop)])
    few = beta(random, numpy.full((baselines, cell.tasks), cell.mean), 0.5)
    before = outcomes(random, few, cell.baseline, cell.kind)
    luck = (before.mean(-1) - few) @ cell.shares
    rates, before = few.repeat(PER_BASELINE, 0), before.repeat(PER_BASELINE, 0)
    after, _ = candidate_of(cell, rates, before, drop, random)
    pairs = pairs_of(cell, before, after)
    worst = numpy.argsort(-luck if drop == 0 else luck)[: baselines // 10]
    facts = [str(cell.tasks), f"{cell.baseline} / {cell.candidate}", f"{cell.touched:.0%}"]
    facts += [f"{100 * drop:.0f} points"]
    for some in (None, pairs):
        low, high = difference_of(sample(before), sample(after), cell.shares, pairs=some).bounds()
        wrong = numpy.asarray(high) < 0 if drop == 0 else numpy.asarray(low) > -drop
        shares = wrong.reshape(baselines, PER_BASELINE).mean(-1)
        facts += [percent(shares.mean()), percent(shares[worst].mean()), percent(float(shares.std()))]
    return facts


def luck_rows(tasks: int, baselines: int) -> Iterator[list[str]]:
    for epochs, touched, drop in product(((3, 3), (10, 3)), (0.1, 0.3, 1.0), (0.0, DROP)):
        if touched * MEANS[0] > drop:
            yield luck_of(Cell(tasks, *epochs, touched, EVENLY, MEANS[0]), drop, baselines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="300 runs of each cell of 6 tasks")
    parser.add_argument("--runs", type=int, default=3000)
    given = parser.parse_args()
    runs, tasks = (300, (6,)) if given.small else (given.runs, TASKS)
    rows = [row for cell in cells(tasks) if (row := simulate(cell, runs))]
    print(table(WORST, [worst_of(group) for group in by_size(rows)]))
    usual = [row for row in rows if is_usual(row.cell)]
    print(table(POWER, [power_of(row) for row in usual]))
    lost = [max(group, key=lambda row: row.lost) for group in by_size(rows)]
    print(table(["finds least more in", "pairs", *POWER], [lost_of(row) for row in lost]))
    heavy = [row for cell in heavy_cells(tasks) if (row := simulate(cell, runs))]
    print(table(WORST, [worst_of(group) for group in by_size(heavy)]))
    print(table(LUCK, list(luck_rows(tasks[-1] if given.small else 45, runs // 4))))
    wrong = max(row.wrong for row in rows)
    worse = max((row.wrong for row in rows if row.is_more_wrong), default=0.0)
    covered = min(row.with_pairs.covered for row in rows)
    loss = max((row.lost for row in rows if row.has_enough_pairs), default=0.0)
    print(
        f"{len(rows)} cells: most wrong {percent(wrong)}, where it is less without pairs {percent(worse)}, "
        f"least coverage {percent(covered)}, "
        f"most lost with enough pairs {percent(loss)}"
    )
    # In few runs chance alone is larger than what is left to the bounds.
    if not given.small and (worse > MOST_WRONG or covered < LEAST_COVERAGE or loss > MOST_LOST):
        sys.exit("the statistics of pairs do not hold")


def is_usual(cell: Cell) -> bool:
    return (cell.spread, cell.mean, cell.weight, cell.kind) == (EVENLY, MEANS[0], 1, PLAIN)


if __name__ == "__main__":
    main()
