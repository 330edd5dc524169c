"""Trials that are paired with those of the baseline: the bounds of their difference."""

from dataclasses import replace
from math import sqrt

import numpy
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.special import stdtrit
from scipy.stats import binom

from pytest_super.gate.statistics.bounds import LEVEL
from pytest_super.gate.statistics.decision import CANNOT_TELL, PASS, REGRESSED, epochs_to_decide, verdict
from pytest_super.gate.statistics.difference import difference, difference_of
from pytest_super.gate.statistics.pairs import Pairs, pairs_of
from pytest_super.gate.statistics.samples import Pair, samples_of, shares_of
from pytest_super.gate.statistics.variance import PRIOR_FREEDOM

VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@st.composite
def tasks(draw: st.DrawFn) -> Pair:
    baseline, candidate = (draw(st.lists(VALUES, min_size=1, max_size=6)) for _ in range(2))
    paired = draw(st.integers(0, min(len(baseline), len(candidate))))
    weight = draw(st.sampled_from([1.0, 2.5, 10.0]))
    return Pair(baseline=baseline, candidate=candidate, paired=paired, weight=weight)


runs = st.lists(tasks(), min_size=1, max_size=8)


def unpaired(found: list[Pair]) -> list[Pair]:
    return [replace(task, paired=0) for task in found]


def equal(number: int, epochs: int, *, weight: float = 1.0) -> list[Pair]:
    """Each task has noise between its trials, but no pair differs."""
    values = [float(n % 2) for n in range(epochs)]
    return [Pair(baseline=values, candidate=values, paired=epochs, weight=weight)] * number


def flipped(*, lost: int, won: int, tasks: int) -> list[Pair]:
    """The first tasks have a pair that was lost or won."""
    task = [0.0, 1.0] * 2
    worse = Pair(baseline=task, candidate=[0.0, 0.0, 0.0, 1.0], paired=4)
    better = Pair(baseline=task, candidate=[1.0, 1.0, 0.0, 1.0], paired=4)
    return [*[worse] * lost, *[better] * won, *equal(tasks - lost - won, 4)]


@given(runs)
def test_without_pairs_nothing_changes(found: list[Pair]) -> None:
    baseline, candidate = samples_of(found)
    shares = shares_of([task.weight for task in found])
    assert pairs_of([task.differences for task in unpaired(found)]) is None
    assert difference(unpaired(found)) == difference_of(baseline, candidate, shares)


@given(runs)
def test_the_narrower_interval_counts(found: list[Pair]) -> None:
    apart, together = difference(unpaired(found)), difference(found)
    lower, upper = together.bounds()
    assert -1 <= lower <= together.value + 1e-12
    assert upper <= 1
    # The rule of three alone can make it wider than that of all trials.
    assume(together.least == 0)
    # Where both are nearly as wide, that of the pairs counts.
    assert upper - lower <= 1.01 * (apart.bounds()[1] - apart.bounds()[0])


@pytest.mark.parametrize(("few", "enough", "epochs"), [(30, 31, 1), (15, 16, 2), (10, 11, 3)])
@pytest.mark.parametrize("solved", [False, True])
def test_equal_pairs_are_not_certain(*, few: int, enough: int, epochs: int, solved: bool) -> None:
    def verdict_of(number: int) -> str:
        found = equal(number, epochs)
        ones = [1.0] * epochs
        sure = [replace(task, baseline=ones, candidate=ones) for task in found]
        return verdict(difference(sure if solved else found), 0.10)

    assert verdict_of(few) == CANNOT_TELL
    assert verdict_of(enough) == PASS


def test_among_equal_pairs_the_one_with_the_most_weight_can_still_differ() -> None:
    found = difference([*equal(5, 3, weight=10.0), *equal(40, 3)])
    largest = 10 / 90 / 3
    assert found.bounds()[0] == pytest.approx(-3 * largest, rel=0.01)
    assert verdict(found, 0.10) == CANNOT_TELL
    assert verdict(difference([*equal(5, 4, weight=10.0), *equal(40, 4)]), 0.10) == PASS


@given(st.integers(1, 40), st.integers(1, 6), st.booleans())
@example(26, 1, True)
def test_more_equal_pairs_are_never_less_sure(number: int, epochs: int, is_solved: bool) -> None:
    def bounds(number: int, epochs: int) -> tuple[float, float]:
        found = [
            Pair(baseline=[float(is_solved)] * epochs, candidate=[float(is_solved)] * epochs, paired=epochs)
        ]
        return difference(found * number).bounds()

    lower, upper = bounds(number, epochs)
    for more in (bounds(number + 1, epochs), bounds(number, epochs + 1)):
        assert more[0] >= lower - 1e-9
        assert more[1] <= upper + 1e-9


def test_more_equal_pairs_next_to_differing_ones_are_never_less_sure() -> None:
    widths = []
    for number in (12, 20, 45, 152):
        lower, upper = difference(flipped(lost=2, won=2, tasks=number)).bounds()
        widths.append(upper - lower)
    assert widths == sorted(widths, reverse=True)


def test_the_variance_is_that_of_the_pairs_that_differ() -> None:
    # 3 of 80 pairs differ. Each has a share of 1/80. It is as if two more did.
    found = difference(flipped(lost=2, won=1, tasks=20))
    assert found.value == pytest.approx(-1 / 80)
    assert found.variance.value == pytest.approx((3 + 1) / 80**2)
    assert found.further == pytest.approx(1 / 80**2)
    assert found.variance.freedom == pytest.approx(3 / 2 + 4)
    half = stdtrit(5.5, LEVEL) * sqrt(5) / 80
    assert found.bounds() == pytest.approx((-1 / 80 - half, -1 / 80 + half))


def test_where_there_is_a_drop_for_sure_it_is_as_if_one_more_pair_differed() -> None:
    found = difference(flipped(lost=5, won=0, tasks=20))
    quantile = stdtrit(5 / 2 + 4, LEVEL)
    lower, upper = found.bounds()
    assert lower == pytest.approx((-5 - quantile * sqrt(5 + 2)) / 80)
    assert upper == pytest.approx((-5 + quantile * sqrt(5 + 1)) / 80)
    assert upper < 0
    assert difference(flipped(lost=0, won=5, tasks=20)).bounds() == pytest.approx((-upper, -lower))


def test_with_weights_and_fractions_each_pair_counts_by_the_square_of_its_part() -> None:
    found = Pairs(
        counts=numpy.array([2.0, 4.0, 0.0]),
        means=numpy.array([-0.25, 0.5, 9.0]),
        squares=numpy.array([0.125, 0.5, 9.0]),
        differing=numpy.array([0.5, 0.5, 9.0]),
    )
    value, freedom = found.noise(numpy.array([0.5, 0.3, 0.2]))
    parts = [0.25**2 * 0.25, 0.075**2 * 2]
    assert value == pytest.approx(sum(parts) + 0.25**2)
    assert freedom == pytest.approx(sum(parts) ** 2 / (parts[0] ** 2 + parts[1] ** 2 / 2) / 2)


def halves(pairs: int, differing: range, prior: int) -> list[float]:
    """Half of the interval for each number of pairs that differ, and so many more, in units of all pairs."""
    found = []
    for number in differing:
        share = numpy.array([number / pairs])
        one = Pairs(counts=numpy.array([float(pairs)]), means=share, squares=share, differing=share)
        value, freedom = one.noise(numpy.array([1.0]))
        value += (prior - 1) * one.further(numpy.array([1.0]))
        found.append(pairs * float(stdtrit(freedom + PRIOR_FREEDOM, LEVEL) * sqrt(value)))
    return found


@pytest.mark.parametrize("pairs", [31, 60, 135, 450])
def test_whatever_share_of_pairs_is_lost_it_is_rarely_excluded(pairs: int) -> None:
    lost = numpy.arange(pairs + 1)
    bounds = (lost + halves(pairs, range(pairs + 1), prior=2)) / pairs
    for loss in numpy.linspace(0.001, 0.999, 999):
        assert binom.pmf(lost, pairs, loss)[bounds < loss].sum() < 0.065


@pytest.mark.parametrize("differing", [4, 5, 8, 11, 30, 100])
def test_pairs_that_differ_by_chance_rarely_show_a_drop(differing: int) -> None:
    # As a sign test: each pair that differs was lost or won with the same chance. Four of four are too few.
    lost = numpy.arange(differing + 1)
    (half,) = halves(1000, range(differing, differing + 1), prior=1)
    assert binom.pmf(lost, differing, 0.5)[2 * lost - differing > half].sum() < 0.056


@given(runs)
def test_the_order_of_pairs_and_of_tasks_makes_no_difference(found: list[Pair]) -> None:
    def turned(task: Pair) -> Pair:
        ends = [list(values[: task.paired])[::-1] for values in (task.baseline, task.candidate)]
        return replace(
            task,
            baseline=[*ends[0], *task.baseline[task.paired :]],
            candidate=[*ends[1], *task.candidate[task.paired :]],
        )

    there, back = difference(found), difference([turned(task) for task in found[::-1]])
    assert back.bounds() == pytest.approx(there.bounds())


def test_left_over_epochs_of_the_baseline_are_not_compared_where_no_pair_differs() -> None:
    # As all trials tell it, the candidate is lower by 20 points.
    lucky = Pair(baseline=[0.0, 1.0, 0.0, *[1.0] * 7], candidate=[0.0, 1.0, 0.0], paired=3)
    unlucky = Pair(baseline=[1.0, 0.0, 1.0, *[0.0, 1.0] * 3, 1.0], candidate=[1.0, 0.0, 1.0], paired=3)
    found = [*[lucky] * 15, *[unlucky] * 15]
    assert verdict(difference(unpaired(found)), 0.10) == REGRESSED
    assert difference(found).value == 0
    assert verdict(difference(found), 0.10) == PASS


def test_few_pairs_next_to_many_other_trials_do_not_count_alone() -> None:
    values = [0.0, 1.0] * 5
    found = [Pair(baseline=values, candidate=values, paired=1)] * 45
    assert difference(found).bounds()[1] == difference(unpaired(found)).bounds()[1]


def test_tasks_without_pairs_have_the_noise_of_their_trials() -> None:
    alone = [Pair(baseline=[0.0, 1.0, 1.0], candidate=[0.0, 0.0, 1.0])] * 10
    found = difference([*equal(35, 3), *alone])
    assert found.value == pytest.approx(10 / 45 / -3)
    part = difference(alone).variance.value * (10 / 45) ** 2
    assert found.variance.value == pytest.approx(part + 1 / 135**2)
    one = difference([*equal(44, 3), *alone[:1]])
    assert one.bounds()[0] > found.bounds()[0]


def test_a_drop_in_pairs_is_found_that_is_not_found_without() -> None:
    found = flipped(lost=14, won=0, tasks=40)
    assert verdict(difference(unpaired(found)), 0.05) == CANNOT_TELL
    assert verdict(difference(found), 0.05) == REGRESSED


def repeated(found: list[Pair], times: int) -> list[Pair]:
    return [
        replace(
            task,
            baseline=[*task.baseline] * times,
            candidate=[*task.candidate] * times,
            paired=times * task.paired,
        )
        for task in found
    ]


def test_the_advice_on_epochs_is_of_further_pairs_of_which_as_many_differ() -> None:
    found = flipped(lost=4, won=3, tasks=12)
    epochs = epochs_to_decide(found, 0.10, least=12)
    assert epochs is not None
    assert verdict(difference(repeated(found, 1)), 0.10) == CANNOT_TELL
    # A task has four.
    whole = -(-epochs // 4)
    assert verdict(difference(repeated(found, 1 + whole)), 0.10) == PASS
    alone = epochs_to_decide(unpaired(found), 0.10, least=12)
    assert alone is None or epochs < alone


def test_pairs_end_where_the_baseline_has_no_more_epochs() -> None:
    # Equal pairs, too few to rule out the drop. More trials cannot have any.
    found = equal(7, 4)
    assert verdict(difference(found), 0.10) == CANNOT_TELL
    assert epochs_to_decide(found, 0.10, least=8) == 1
    assert (epochs_to_decide(found, 0.10) or 101) > 1
