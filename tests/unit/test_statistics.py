"""What numbers of trials say: pass@k, bounds of differences and means, decisions, plans."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from pytest_super.statistics.decision import CANNOT_TELL, PASS, REGRESSED, epochs_to_decide, plan, verdict
from pytest_super.statistics.difference import PRIOR_VARIANCE, Pair, difference
from pytest_super.statistics.epochs import schedule
from pytest_super.statistics.looks import confidences
from pytest_super.statistics.mean import TaskMean, general_mean, jeffreys
from pytest_super.statistics.repeats import best_of, worst_of

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


def test_of_solved_trials_they_are_pass_at_k_and_pass_hat_k() -> None:
    # 1 - C(n - c, k) / C(n, k), and C(c, k) / C(n, k), with c of n solved.
    assert best_of([1, 0, 0, 0, 0], 3) == pytest.approx(0.6)
    assert best_of([1, 1, 0, 0, 0], 3) == pytest.approx(0.9)
    assert worst_of([1, 1, 1, 0], 2) == pytest.approx(0.5)


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
    # Tasks that differ from each other, but not from trial to trial, add none.
    apart = [Pair(baseline=[float(n % 2)] * 5, candidate=[float(n % 2)] * 5) for n in range(20)]
    noisy = many(baseline=[0.0, 1.0] * 3, candidate=[0.0, 1.0] * 3, tasks=20)
    assert difference(noisy).variance.freedom == pytest.approx(20 * 5 * 2 + 4)
    own = 0.3 * (2 / 6) / 20
    assert difference(noisy).variance.value == pytest.approx(
        (200 * own + 4 * PRIOR_VARIANCE * (2 / 6) / 20) / 204
    )
    assert difference(apart).variance.value == pytest.approx(PRIOR_VARIANCE * (2 / 5) / 20)


def test_without_repeats_the_differences_of_tasks_are_the_sample() -> None:
    found = [Pair(baseline=[0.0], candidate=[float(n % 2)]) for n in range(10)]
    assert difference(found).variance.freedom == 9 + 4


def test_a_few_repeats_do_not_tell_the_noise_of_many_single_trials() -> None:
    # As of a run that was interrupted in its second epoch.
    single = [Pair(baseline=[0.0, 1.0] * 5, candidate=[float(n % 2)]) for n in range(44)]
    one = Pair(baseline=[1.0] * 10, candidate=[1.0, 1.0])
    assert difference([*single, one]).variance.freedom == 44 + 4
    half = [Pair(baseline=pair.baseline, candidate=[0.0, 1.0]) for pair in single[:22]]
    assert difference([*half, *single[22:]]).variance.freedom > 44 + 4


def test_equal_runs_of_few_trials_pass_only_where_the_margin_allows_it() -> None:
    few = many(baseline=[1.0], candidate=[1.0], tasks=6)
    assert verdict(difference(few), 0.10) == CANNOT_TELL
    assert verdict(difference(few), 0.45) == PASS
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


def test_the_number_of_further_epochs_decides() -> None:
    found = many(baseline=[0.0, 1.0] * 5, candidate=[0.0, 1.0], tasks=45)
    assert verdict(difference(found), 0.10) == CANNOT_TELL
    more = epochs_to_decide(found, 0.10)
    assert more is not None
    longer = many(baseline=[0.0, 1.0] * 5, candidate=[0.0, 1.0] * (1 + (more + 1) // 2), tasks=45)
    assert verdict(difference(longer), 0.10) == PASS


def test_some_margins_cannot_be_decided_with_this_baseline() -> None:
    assert epochs_to_decide(many(baseline=[0.0, 1.0], candidate=[0.0, 1.0], tasks=6), 0.02) is None


def test_a_plan_tells_what_will_be_found() -> None:
    # The published simulation: 45 tasks, 10 epochs before and 3 now find 10 points in 90 % of runs.
    noisy = [[0.0, 1.0] * 5 if n % 2 else [float(n % 4 == 0)] * 10 for n in range(45)]
    found = plan(noisy, [1.0] * 45, epochs=[3] * 45, margin=0.05)
    assert 0.08 < found.detectable < 0.10
    assert 0.35 < found.passes_unchanged < 0.45
    assert plan(noisy, [1.0] * 45, epochs=[10] * 45, margin=0.05).detectable < found.detectable
    assert plan([[1.0]] * 6, [1.0] * 6, epochs=[1] * 6, margin=0.1).detectable > 0.5


# Several looks


def test_the_bounds_of_five_looks_are_the_published_ones() -> None:
    # Two-sided 5 %, the function of Lan and DeMets that is like O'Brien and Fleming: Reboussin et al. 2000,
    # doi 10.1016/s0197-2456(00)00057-x.
    found = [ndtri(one) for one in confidences([0.2, 0.4, 0.6, 0.8, 1.0], 0.975)]
    assert found == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4)


def test_a_single_look_needs_no_more_than_the_level() -> None:
    assert confidences([1.0], 0.95) == pytest.approx([0.95])


def test_looks_that_see_nearly_the_same_are_one() -> None:
    assert confidences([0.5, 0.99, 0.995, 1.0], 0.95)[1:3] == [1.0, 1.0]
    assert confidences([0.5, 0.99, 0.995, 1.0], 0.95)[3] == confidences([0.5, 1.0], 0.95)[1]


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
    found = schedule(baseline, [1.0] * len(baseline), least=least, most=most, margin=0.1)
    assert all(least <= one <= most for one in found.epochs)
    assert len(found.fractions) == max(found.epochs) - least + 1
    assert found.fractions == sorted(set(found.fractions))
    assert found.fractions[-1] == 1.0
