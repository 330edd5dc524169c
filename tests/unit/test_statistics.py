"""What numbers of trials say: pass@k, bounds of differences and means, decisions, plans."""

import random
from dataclasses import replace
from itertools import combinations, product
from statistics import fmean

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtri, stdtrit

from pytest_super.gate import CANNOT_TELL
from pytest_super.gate.difference import PASS, REGRESSED, chance_of_drop, difference, verdict
from pytest_super.gate.looks import confidences
from pytest_super.gate.planning import epochs_to_detect, power, schedule
from pytest_super.gate.samples import PRIOR_VARIANCE, Pair, between_tasks, sample_of, trace_of_square
from pytest_super.report.page.interval import TaskMean, general_mean, jeffreys
from pytest_super.report.repeats import best_of, worst_of

values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=6)
pairs = st.lists(
    st.builds(Pair, baseline=values, candidate=values, weight=st.sampled_from([1.0, 2.5])),
    min_size=1,
    max_size=8,
)


def many(*, baseline: list[float], candidate: list[float], tasks: int) -> list[Pair]:
    return [Pair(baseline=baseline, candidate=candidate)] * tasks


# Several trials of a task


@given(found=values, k=st.integers(1, 6))
def test_the_best_and_the_worst_of_k_are_means_over_all_choices(found: list[float], k: int) -> None:
    k = min(k, len(found))
    chosen = list(combinations(found, k))
    assert best_of(found, k) == pytest.approx(fmean(map(max, chosen)))
    assert worst_of(found, k) == pytest.approx(fmean(map(min, chosen)))


# Differences on the same tasks


@given(pairs)
def test_bounds_are_around_the_weighted_difference(found: list[Pair]) -> None:
    result = difference(found)
    total = sum(pair.weight for pair in found)
    assert result.value == pytest.approx(sum(pair.weight * pair.difference for pair in found) / total)
    lower, upper = result.bounds()
    assert -1 <= lower < upper <= 1
    assert lower <= result.value + 1e-12
    assert upper >= result.value - 1e-12


@given(pairs)
def test_exchanged_runs_have_the_opposite_difference(found: list[Pair]) -> None:
    there = difference(found)
    back = difference([Pair(baseline=p.candidate, candidate=p.baseline, weight=p.weight) for p in found])
    assert back.value == pytest.approx(-there.value)
    assert back.variance.value == pytest.approx(there.variance.value)


def test_the_variance_is_that_within_tasks() -> None:
    # Tasks that differ from each other, but not from trial to trial, have none but a part of the prior one.
    apart = [Pair(baseline=[float(n % 2)] * 5, candidate=[float(n % 2)] * 5) for n in range(20)]
    noisy = many(baseline=[0.0, 1.0] * 3, candidate=[0.0, 1.0] * 3, tasks=20)
    assert difference(noisy).variance.freedom == pytest.approx(20 * 5 * 2 + 4)
    expected = (200 * 0.3 + 4 * PRIOR_VARIANCE) / 204 * (2 / 6) / 20
    assert difference(noisy).variance.value == pytest.approx(expected)
    assert difference(apart).variance.value == pytest.approx(
        4 / (20 * 4 * 2 + 4) * PRIOR_VARIANCE * (2 / 5) / 20
    )


def test_without_repeats_the_differences_of_tasks_are_the_sample() -> None:
    found = [Pair(baseline=[0.0], candidate=[float(n % 2)]) for n in range(10)]
    assert difference(found).variance.freedom == pytest.approx(9 + 4)


def test_a_few_repeats_do_not_tell_the_noise_of_many_single_trials() -> None:
    # As of a run that was interrupted in its second epoch.
    single = [Pair(baseline=[0.0, 1.0] * 5, candidate=[float(n % 2)]) for n in range(44)]
    one = Pair(baseline=[1.0] * 10, candidate=[1.0, 1.0])
    assert difference([*single, one]).variance.freedom == pytest.approx(44 + 4)
    half = [Pair(baseline=pair.baseline, candidate=[0.0, 1.0]) for pair in single[:22]]
    assert difference([*half, *single[22:]]).variance.freedom > 44 + 4


def test_with_weights_the_variance_of_one_epoch_is_unbiased() -> None:
    chance = random.Random(3)
    weights = [10.0] * 3 + [1.0] * 20
    shares = numpy.array(weights) / sum(weights)
    samples = [numpy.array([chance.gauss(0, 1) for _ in weights]) for _ in range(4000)]
    found = [between_tasks(one, shares) for one in samples]
    assert fmean(float(one.value) for one in found) == pytest.approx(sum(shares**2), rel=0.05)
    assert 2 < found[0].freedom < 5
    assert between_tasks(samples[0], numpy.full(23, 1 / 23)).freedom == pytest.approx(22)


def test_the_degrees_of_freedom_are_those_of_the_quadratic_form() -> None:
    shares = numpy.array([0.5, 0.2, 0.2, 0.1])
    a = shares**2 / (1 - 2 * shares + shares @ shares)
    residual = numpy.eye(4) - numpy.outer(numpy.ones(4), shares)
    form = residual.T @ numpy.diag(a) @ residual
    assert trace_of_square(a, shares) == pytest.approx(numpy.trace(form @ form))
    assert numpy.trace(form) == pytest.approx(shares @ shares)


@given(
    st.lists(
        st.tuples(*[st.sampled_from([0.0, 0.25, 1.0])] * 2, st.sampled_from([1.0, 2.0, 10.0])),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 1, 2, 3, 9]),
    st.sampled_from([1, 1, 2, 3, 9]),
)
@example(tasks=[(1.0, 1.0, 1.0)] * 12, old=1, new=1)
@example(tasks=[(1.0, 0.0, 1.0)] * 2 + [(1.0, 1.0, 10.0)] * 9, old=2, new=1)
# With few degrees of freedom, those of Satterthwaite fall as one run becomes longer than the other.
@example(tasks=[(1.0, 1.0, 1.0)], old=2, new=4)
def test_one_more_equal_epoch_never_widens_the_bounds(
    tasks: list[tuple[float, float, float]], old: int, new: int
) -> None:
    def bounds(before: int, after: int) -> tuple[float, float]:
        pairs = [Pair(baseline=[a] * before, candidate=[b] * after, weight=weight) for a, b, weight in tasks]
        return replace(difference(pairs), exact=1.0).bounds()

    lower, upper = bounds(old, new)
    for before, after in ((old + 1, new), (old, new + 1), (old + 1, new + 1)):
        surer = bounds(before, after)
        assert surer[0] >= lower - 1e-9
        assert surer[1] <= upper + 1e-9


@pytest.mark.parametrize("epochs", [1, 2, 3, 10])
def test_what_is_certain_is_decided_by_any_number_of_equal_epochs(epochs: int) -> None:
    right = many(baseline=[1.0] * epochs, candidate=[1.0] * epochs, tasks=45)
    assert verdict(difference(right), 0.10) == PASS
    broken = many(baseline=[1.0] * epochs, candidate=[0.0] * epochs, tasks=4)
    assert verdict(difference([*broken, *right[4:]]), 0.10) == REGRESSED


def test_a_run_without_a_failure_has_the_bound_of_wilson() -> None:
    found = difference(many(baseline=[1.0] * 100, candidate=[1.0] * 3, tasks=10))
    square = float(stdtrit(found.variance.seen, 0.95)) ** 2
    assert found.bounds()[0] == pytest.approx(-square / (30 + square))


def test_few_tasks_with_few_epochs_are_decided_exactly() -> None:
    few = many(baseline=[1.0] * 10, candidate=[0.0, 0.0], tasks=3)
    # Of 66³ ways to divide the trials one is as low.
    assert difference(few).exact == pytest.approx(66.0**-3)
    assert verdict(difference(few), 0.10) == REGRESSED
    assert verdict(difference(few), 0.10, level=1.0) == CANNOT_TELL
    equal = difference(many(baseline=[1.0] * 10, candidate=[1.0, 1.0], tasks=3))
    assert (equal.is_small, equal.exact, verdict(equal, 0.99)) == (True, 1.0, CANNOT_TELL)
    assert verdict(difference(many(baseline=[1.0] * 10, candidate=[0.0] * 4, tasks=3)), 0.10) == REGRESSED
    assert verdict(difference(many(baseline=[1.0] * 10, candidate=[0.0] * 2, tasks=4)), 0.10) == REGRESSED
    # One task has nearly all the weight.
    heavy = [
        Pair(baseline=[1.0], candidate=[0.0], weight=10.0),
        *many(baseline=[1.0], candidate=[0.0], tasks=5),
    ]
    assert difference(heavy).is_small


def test_equal_runs_of_few_trials_pass_only_where_the_margin_allows_it() -> None:
    few = difference(many(baseline=[1.0], candidate=[1.0], tasks=6))
    assert (verdict(few, 0.10), verdict(few, 0.45)) == (CANNOT_TELL, PASS)
    assert verdict(difference(many(baseline=[1.0] * 3, candidate=[1.0] * 3, tasks=150)), 0.10) == PASS


def test_a_lower_run_has_regressed_when_no_drop_can_be_excluded() -> None:
    worse = many(baseline=[1.0] * 5, candidate=[0.0, 1.0, 0.0, 1.0, 1.0], tasks=45)
    assert verdict(difference(worse), 0.10) == REGRESSED
    slightly = [*many(baseline=[1.0] * 5, candidate=[1.0] * 5, tasks=130), *worse[:15]]
    # It is worse for sure, but not by the margin.
    assert difference(slightly).bounds()[1] < 0
    assert verdict(difference(slightly), 0.10) == PASS


# How good in general


def test_an_interval_of_equal_values_has_a_width() -> None:
    alike = [TaskMean(value=0.0, cluster=str(n)) for n in range(6)]
    found = general_mean(alike)
    assert (found.value, found.low) == (0.0, 0.0)
    assert 0.1 < found.high < 0.5
    assert general_mean([TaskMean(value=1.0, cluster=one.cluster) for one in alike]).high == 1.0


def test_tasks_of_one_repository_tell_less_than_those_of_several() -> None:
    solved = [float(n % 4 == 0) for n in range(40)]
    apart = general_mean([TaskMean(value=one, cluster=str(n)) for n, one in enumerate(solved)])
    alike = general_mean([TaskMean(value=one, cluster=str(one) + str(n % 4)) for n, one in enumerate(solved)])
    assert alike.high - alike.low > apart.high - apart.low
    lone = general_mean([TaskMean(value=0.5, cluster="one")] * 40)
    assert lone.high - lone.low > 0.7


@given(st.integers(0, 50), st.integers(0, 50))
def test_intervals_of_rates_have_the_rate(solved: int, missed: int) -> None:
    if solved + missed:
        low, high = jeffreys(solved, solved + missed)
        assert 0 <= low <= solved / (solved + missed) <= high <= 1


# Decisions and plans


def test_a_plan_tells_what_will_be_found() -> None:
    # The published simulation: 45 tasks, 10 epochs before and 3 now find 10 points in 90 % of runs.
    noisy = [[0.0, 1.0] * 5 if n % 2 else [float(n % 4 == 0)] * 10 for n in range(45)]
    found = power(sample_of(noisy), [3] * 45, 0.05)
    assert found.detectable is not None
    assert 0.08 < found.detectable < 0.11
    assert 0.35 < found.passes_unchanged < 0.45
    longer = power(sample_of(noisy), [10] * 45, 0.05)
    assert longer.detectable is not None
    assert longer.detectable < found.detectable


def test_a_plan_knows_that_pass_goes_first() -> None:
    # A drop of 4 points would be shown for sure, if it were not excluded for sure that it is one of 10.
    calm = [[1.0] * 10 if n % 3 else [1.0] * 9 + [0.0] for n in range(152)]
    found = power(sample_of(calm), [10] * 152, 0.10)
    assert found.detectable is not None
    assert found.detectable > 0.09
    strict = power(sample_of(calm), [10] * 152, 0.02)
    assert strict.detectable is not None
    assert strict.detectable < 0.04


def test_a_drop_that_cannot_be_found_needs_so_many_epochs() -> None:
    noisy = [[0.0, 1.0] * 20] * 45
    assert not power(sample_of(noisy), [2] * 45, 0.1).can_find(0.1)
    needed = epochs_to_detect(sample_of(noisy), 0.1)
    assert needed is not None
    assert power(sample_of(noisy), [needed] * 45, 0.1).can_find(0.1)
    assert not power(sample_of(noisy), [needed - 1] * 45, 0.1).can_find(0.1)
    assert epochs_to_detect(sample_of([[0.0] * 3] * 12), 0.1) is None


# Several looks


def test_five_looks_err_as_often_as_one_and_more_often_the_later_they_come() -> None:
    from scipy.stats import multivariate_normal

    looks = [0.2, 0.4, 0.6, 0.8, 1.0]
    bounds = ndtri(confidences(looks, 0.95))
    brownian = numpy.sqrt(numpy.minimum.outer(looks, looks) / numpy.maximum.outer(looks, looks))
    for number, fraction in enumerate(looks, 1):
        below = multivariate_normal.cdf(bounds[:number], cov=brownian[:number, :number])
        assert 1 - below == pytest.approx(0.05 * fraction**2.5, abs=2e-4)


def test_looks_that_see_nearly_the_same_are_one() -> None:
    assert confidences([1.0], 0.95) == pytest.approx([0.95])
    apart = confidences([0.5, 1.0], 0.95)
    assert confidences([0.5, 0.99, 0.995, 1.0], 0.95) == [apart[0], 1.0, 1.0, apart[1]]


@given(st.lists(st.floats(0.01, 0.99), max_size=8, unique_by=lambda one: round(one, 2)))
def test_every_look_is_surer_than_one_alone(parts: list[float]) -> None:
    found = confidences([*sorted(parts), 1.0], 0.95)
    assert all(0.95 - 1e-6 <= one <= 1 for one in found)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6), min_size=1, max_size=12),
    st.integers(2, 4),
    st.integers(5, 12),
)
def test_each_task_has_at_least_the_least_epochs_and_looks_see_more_and_more(
    baseline: list[list[float]], least: int, most: int
) -> None:
    found = schedule(sample_of(baseline), least=least, most=most, margin=0.1, pass_chance=0.88)
    assert all(least <= one <= most for one in found.epochs)
    assert len(found.fractions) == max(found.epochs) - least + 1
    assert found.fractions == sorted(set(found.fractions))
    assert found.fractions[-1] == 1.0


@given(
    st.lists(
        st.builds(
            Pair,
            baseline=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=4),
            candidate=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=2),
            weight=st.sampled_from([1.0, 2.5]),
        ),
        min_size=1,
        max_size=2,
    )
)
def test_the_exact_chance_is_that_of_all_ways_to_divide_the_trials(found: list[Pair]) -> None:
    ways = []
    for pair in found:
        values, size = [*pair.baseline, *pair.candidate], len(pair.candidate)
        chosen = [[values[place] for place in places] for places in combinations(range(len(values)), size)]
        rest = [(sum(values) - sum(one)) / len(pair.baseline) for one in chosen]
        ways.append([pair.weight * (fmean(one) - other) for one, other in zip(chosen, rest, strict=True)])
    least = sum(pair.weight * pair.difference for pair in found) + 1e-9
    low = [sum(one) <= least for one in product(*ways)]
    assert chance_of_drop(found) == pytest.approx(fmean(low))
