"""Tasks that a baseline never solved: which need not run, and what stands in their place."""

from dataclasses import replace

import pytest

from pytest_super.gate import Selected
from pytest_super.gate.comparison import compare
from pytest_super.gate.difference import difference
from pytest_super.gate.never_solved import AUDITED, is_audited
from pytest_super.gate.plan import plan_of
from pytest_super.gate.samples import Pair
from pytest_super.gate.side import Side, TaskTrials
from pytest_super.option_types import Epochs
from tests.unit.test_comparison import many, side

ONCE, NEVER, OFTEN = [1.0, *[0.0] * 9], [0.0] * 10, [1.0, 0.0] * 5


def suite(set: str = "expert", *, first: int = 0, once: int = 2) -> dict[str, TaskTrials]:
    """20 tasks that are solved often, some once, and 20 never."""
    tasks = many(OFTEN, tasks=20, first=first, set=set)
    tasks |= many(ONCE, tasks=once, first=first + 20, set=set)
    return tasks | many(NEVER, tasks=20, first=first + 40, set=set)


def not_run(base: Side, *must_run: str, margin: float = 0.1, epochs: int = 10) -> list[str]:
    selected = Selected(ids=base.tasks.keys(), must_run=set(must_run))
    return plan_of(base, selected, Epochs(2, epochs), margin, leaves_out=True).not_run


def ids(first: int, last: int) -> list[str]:
    return [f"t{number:03}" for number in range(first, last)]


def test_what_was_never_solved_in_ten_trials_does_not_run() -> None:
    base = side("base", suite())
    assert not_run(base) == ids(40, 60)
    assert not_run(base, "t045") == [id for id in ids(40, 60) if id != "t045"]
    short = {id: replace(one, values=one.values[:9]) for id, one in base.tasks.items()}
    assert not_run(replace(base, tasks=short)) == []


def test_without_leave_all_tasks_run() -> None:
    base = side("base", suite())
    assert plan_of(base, Selected(ids=base.tasks.keys()), Epochs(2, 10), 0.1).not_run == []


def test_nothing_is_left_out_where_that_could_hide_a_fifth_of_the_margin() -> None:
    # What was solved once in ten trials says how often the others would have been: 6 such tasks of 46.
    base = side("base", suite(once=6))
    assert not_run(base, margin=0.08) == ids(40, 60)
    assert not_run(base, margin=0.05) == []


def test_nothing_is_left_out_where_the_others_would_need_as_many_trials() -> None:
    base = side("base", suite(once=9))
    assert not_run(base) == []
    assert not_run(base, epochs=4) == ids(40, 60)


def test_a_task_that_cannot_be_compared_is_not_left_out() -> None:
    base = side("base", suite())
    selected = Selected(ids=base.tasks.keys(), apart={"t040"})
    found = plan_of(base, selected, Epochs(2, 10), 0.1, leaves_out=True)
    assert (found.epochs["t040"], found.epochs["t041"]) == (2, 0)


def test_each_set_has_stand_ins_by_its_own_rate() -> None:
    base = side("base", suite("expert") | suite("masked", first=100, once=6))
    absent = [*ids(40, 60), *ids(140, 160)]
    new = side("new", {id: one for id, one in base.tasks.items() if id not in absent}, not_run=absent)
    found = compare(base, new, 0.1)
    assert found.left_out == {}
    rates = {}
    for one in found.sets:
        values = {value for task in one.tasks if not task.is_run for value in task.candidate.values}
        rates[one.set] = [round(value, 3) for value in values]
        assert (len(one.tasks) - len(one.ran), one.flipped("lost"), one.flipped("won")) == (20, [], [])
    # A tenth of each task that was solved once, over the 20.
    assert rates == {"expert": [0.01], "masked": [0.03]}


def test_a_task_that_a_run_left_out_is_missing_if_the_baseline_has_solved_it_since() -> None:
    tasks = suite()
    new = side("new", {id: one for id, one in tasks.items() if id not in ids(40, 60)}, not_run=ids(40, 60))
    base = side("base", {**tasks, "t040": replace(tasks["t040"], values=OFTEN)})
    found = compare(base, new, 0.1)
    assert found.left_out == {"only in base": ["t040"]}
    assert len(found.sets[0].tasks) - len(found.sets[0].ran) == 19


def test_before_a_pass_what_was_left_out_counts_as_failed() -> None:
    pairs = [Pair(baseline=OFTEN, candidate=OFTEN)] * 20
    absent = [Pair(baseline=NEVER, candidate=[0.05] * 10)] * 20
    known = difference([*pairs, *absent]).bounds()
    unseen = difference([*pairs, *(replace(one, is_run=False) for one in absent)]).bounds()
    assert unseen[0] == pytest.approx(known[0] - 0.025)
    assert unseen[1] == known[1]


def test_errors_and_what_was_left_out_are_both_taken_at_their_worst() -> None:
    base = side("base", suite())
    ran = {id: one for id, one in base.tasks.items() if id not in ids(40, 60)}
    new = side("new", ran, not_run=ids(40, 60))
    # A margin at which the run passes, and no longer with what one more trial in a task can hide.
    margins = [step / 1000 for step in range(20, 120)]
    passing = next(margin for margin in margins if compare(base, new, margin).verdict == "pass")
    found = compare(base, replace(new, errors={"t000": 1}), passing)
    assert (found.verdict, found.sets[0].hidden) == ("cannot tell", "pass")


def test_one_agent_in_ten_is_audited_and_all_its_runs_are() -> None:
    audited = [is_audited({"contents": number}, "base") for number in range(2000)]
    assert audited == [is_audited({"contents": number}, "base") for number in range(2000)]
    assert 0.8 < sum(audited) * AUDITED / len(audited) < 1.2
