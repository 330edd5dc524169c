"""What several trials of each task say together."""

from __future__ import annotations

from itertools import combinations, pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.report.repeats import chosen_share, pass_at, repeat_lines
from pytest_super.report.summary import Group
from pytest_super.store.results import TrialResult

if TYPE_CHECKING:
    import random


def trial(id: str, epoch: int, solved: bool, *found: str, **facts: Any) -> TrialResult:
    values = [
        {"command": "e", "name": str(index), "found": text, "why": "" if text else "none", "score": 0.0}
        for index, text in enumerate(found)
    ]
    return TrialResult(
        id=id,
        set="functions",
        category=None,
        epoch=epoch,
        rerun=0,
        agent="a",
        solved=solved,
        graded=values,
        masked={"n": 1},
        **facts,
    )


@given(st.lists(st.booleans(), min_size=2, max_size=8))
def test_pass_at_k_is_the_share_of_samples_with_a_solved_trial(solved: list[bool]) -> None:
    trials = [trial("t", epoch, one) for epoch, one in enumerate(solved, 1)]
    found = pass_at(Group(results=trials))
    assert [one.k for one in found] == list(range(1, len(solved) + 1))
    for one in found:
        samples = list(combinations(solved, one.k))
        shares = fmean(map(any, samples)), fmean(map(all, samples))
        assert (one.value, one.all_of_k) == pytest.approx(shares)


def test_errors_do_not_count_and_tasks_with_fewer_trials_are_left_out_of_every_k() -> None:
    trials = [
        trial("a", 1, True),
        trial("a", 2, False),
        trial("b", 1, True),
        trial("b", 2, True, error="no engine"),
    ]
    found = pass_at(Group(results=trials))
    assert [(one.k, one.value, one.tasks) for one in found] == [(1, 0.5, 1), (2, 1.0, 1)]


def test_k_is_as_large_as_half_of_the_tasks_allow() -> None:
    trials = [trial("noisy", epoch, epoch == 1) for epoch in range(1, 9)]
    trials += [trial(id, epoch, False) for id in ("a", "b") for epoch in (1, 2, 3)]
    assert [(one.k, one.tasks) for one in pass_at(Group(results=trials))] == [(1, 3), (2, 3), (3, 3)]


EPOCHS = st.lists(st.sampled_from(["solved", "missed", "error"]), max_size=12)


@given(st.lists(st.tuples(EPOCHS, st.sampled_from([1.0, 2.0, 10.0])), max_size=6))
def test_pass_at_k_never_falls_and_pass_hat_k_never_rises(tasks: list[tuple[list[str], float]]) -> None:
    trials = [
        trial(str(number), epoch, one == "solved", error="no" if one == "error" else None, weight=weight)
        for number, (epochs, weight) in enumerate(tasks)
        for epoch, one in enumerate(epochs, 1)
    ]
    found = pass_at(Group(results=trials))
    assert len({one.tasks for one in found}) <= 1
    assert [one.k for one in found] == list(range(1, len(found) + 1))
    for less, more in pairwise(found):
        assert more.value >= less.value - 1e-12
        assert more.all_of_k <= less.all_of_k + 1e-12


def test_one_trial_a_task_says_nothing_about_repeats() -> None:
    group = Group(results=[trial("a", 1, True), trial("b", 1, False)])
    assert pass_at(group) == []
    assert list(repeat_lines(group)) == []


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        # The experiments of the first do not run.
        ([("",), ("7",)], {2}),
        # Two of three agree.
        ([("1.0",), ("3.0000001",), ("3.0",)], {2, 3}),
        # More values are better than agreement.
        ([("1", ""), ("1", ""), ("2", "5")], {3}),
        # Not a number is no value.
        ([("NaN",), ("4",)], {2}),
    ],
)
def test_a_candidate_is_chosen_by_what_it_yields_and_not_by_what_is_right(
    candidates: list[tuple[str, ...]], chosen: set[int]
) -> None:
    trials = [trial("t", epoch, epoch in chosen, *found) for epoch, found in enumerate(candidates, 1)]
    assert chosen_share(Group(results=trials)) == 1.0
    others = [trial("t", epoch, epoch not in chosen, *found) for epoch, found in enumerate(candidates, 1)]
    assert chosen_share(Group(results=others)) == 0.0


def test_among_equal_candidates_the_share_that_is_solved_counts() -> None:
    trials = [trial("t", 1, True, "a"), trial("t", 2, False, "b"), trial("t", 3, True, "")]
    assert chosen_share(Group(results=trials)) == 0.5


CANDIDATE = st.tuples(st.booleans(), st.lists(st.sampled_from(["", "1", "2"]), max_size=2))


@given(st.lists(CANDIDATE, min_size=2, max_size=6), st.randoms())
def test_what_is_chosen_does_not_depend_on_the_order_of_the_epochs(
    found: list[tuple[bool, list[str]]], chance: random.Random
) -> None:
    def share(order: list[tuple[bool, list[str]]]) -> float | None:
        trials = [trial("t", epoch, solved, *values) for epoch, (solved, values) in enumerate(order, 1)]
        return chosen_share(Group(results=trials))

    assert share(found) == share(chance.sample(found, len(found)))


def test_the_summary_has_pass_at_k_with_the_costs() -> None:
    trials = [
        trial("a", 1, False, "1", cost_usd=0.5),
        trial("a", 2, True, "2", cost_usd=0.1),
        trial("b", 1, True, "2", cost_usd=0.2),
    ]
    assert list(repeat_lines(Group(results=trials))) == [
        "pass@1 0.500  pass@2 1.000  pass^2 0.000 (over 1 of 2 tasks); "
        "$0.2500 a task for one, $0.4000 for all",
        "chosen by execution: 0.500",
    ]
