"""What a trial has used and what it has left, by its clocks, its calls and its model's ledger."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.completion import Usage
from pytest_super.tasks.task import TOKEN_BUDGETS, Limits, Task
from pytest_super.trial.budget import Budget, budget_for

COSTS = st.none() | st.integers(0, 64).map(lambda n: n / 64)
CALLS = st.lists(
    st.builds(Usage, prompt_tokens=st.integers(0, 99), completion_tokens=st.integers(0, 9), cost_usd=COSTS)
)


def budget(tokens: int = 1000) -> Budget:
    return Budget(Limits(), tokens=tokens, clock=lambda: 0.0)


def sums(calls: list[Usage]) -> tuple[int, int, float]:
    costs = sum(call.cost_usd or 0.0 for call in calls)
    return sum(c.prompt_tokens for c in calls), sum(c.completion_tokens for c in calls), costs


@given(own=CALLS, told=CALLS, untold=CALLS, later=CALLS)
def test_books_stand_for_the_calls_of_the_model_and_for_nothing_else(
    own: list[Usage], told: list[Usage], untold: list[Usage], later: list[Usage]
) -> None:
    spent = budget()
    for used in own:
        spent.charge_model(
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            cost_usd=used.cost_usd,
            seconds=0.0,
        )
    booked: list[Usage] = []
    for told_now in (told, later):
        for used in told_now:
            spent.charge_call(used, seconds=0.0)
        booked += [*told_now, *untold]
        prompt, completion, cost = sums(booked)
        is_priced = any(used.cost_usd is not None for used in booked)
        spent.charge_usage(
            Usage(prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost if is_priced else None)
        )
    assert (spent.prompt_tokens, spent.completion_tokens, spent.cost_usd or 0.0) == sums([*own, *booked])


def test_what_the_books_tell_counts_for_the_limits() -> None:
    spent = budget(tokens=100)
    spent.charge_call(Usage(prompt_tokens=60, completion_tokens=1, cost_usd=0.5), seconds=2.0)
    assert spent.spent() is None
    spent.charge_usage(Usage(prompt_tokens=120, completion_tokens=2, cost_usd=1.0))
    assert (spent.spent(), spent.cost_usd, spent.model_seconds) == ("tokens", 1.0, 2.0)


class Clock:
    """A wall clock and a kernel's meter that a test moves."""

    def __init__(self, wall: float = 1000.0, busy: float = 7.0) -> None:
        self.wall, self.busy = wall, busy

    def pass_time(self, wall: float, busy: float = 0.0) -> None:
        self.wall += wall
        self.busy += busy


def metered(clock: Clock, **limits: Any) -> Budget:
    """A budget whose trial has just begun. The earlier work of its kernel is free."""
    begun = Budget(Limits(**limits), tokens=1000, clock=lambda: clock.wall)
    begun.start_metering(lambda: clock.busy)
    return begun


def test_before_it_is_metered_no_time_passes() -> None:
    clock = Clock()
    fresh = Budget(Limits(), tokens=1000, clock=lambda: clock.wall)
    clock.pass_time(50)
    assert (fresh.compute_seconds, fresh.wall_seconds, fresh.spent()) == (0.0, 0.0, None)


def test_compute_time_is_what_the_kernel_worked_since_metering_began() -> None:
    clock = Clock()
    spent = metered(clock, compute=10)
    clock.pass_time(30, busy=4)
    assert (spent.compute_seconds, spent.wall_seconds, spent.seconds_left()) == (4.0, 30.0, 6.0)


def test_the_compute_time_of_several_kernels_adds_up_while_wall_time_goes_on() -> None:
    clock = Clock()
    spent = metered(clock)
    clock.pass_time(20, busy=3)
    spent.stop_metering()
    clock.pass_time(5, busy=100)
    assert spent.compute_seconds == 3.0
    spent.start_metering(lambda: clock.busy)
    clock.pass_time(1, busy=2)
    assert (spent.compute_seconds, spent.wall_seconds) == (5.0, 26.0)


SECONDS = st.integers(0, 64).map(lambda n: n / 8)
SAMPLES = st.lists(st.tuples(SECONDS, SECONDS, SECONDS, st.booleans()))


@given(samples=SAMPLES)
def test_a_sample_costs_the_time_of_its_cells_or_its_processor_time(
    samples: list[tuple[float, float, float, bool]],
) -> None:
    clock = Clock()
    spent = metered(clock)
    expected = 0.0
    for wall, busy, processor, is_new_meter in samples:
        busy, processor = min(busy, wall), min(processor, wall)
        clock.pass_time(wall, busy)
        spent.charge_work(processor)
        expected += max(busy, processor)
        if is_new_meter:
            spent.start_metering(lambda: clock.busy)
    assert spent.compute_seconds == expected <= spent.wall_seconds


def test_the_wall_limit_bounds_what_a_cell_may_run_on() -> None:
    clock = Clock()
    spent = metered(clock, compute=100, wall=20)
    clock.pass_time(15, busy=1)
    assert (spent.wall_left(), spent.seconds_left()) == (5.0, 5.0)
    clock.pass_time(15)
    assert (spent.wall_left(), spent.seconds_left()) == (-10.0, 0.0)


def test_waiting_for_the_model_is_not_wall_time_and_is_asked_for_only_at_the_limit() -> None:
    clock, waited = Clock(), iter([15.0, 15.0, 4.0])
    spent = metered(clock, wall=20)
    spent.leave_out(lambda: next(waited))
    clock.pass_time(19)
    assert (spent.wall_left(), spent.waited_seconds) == (1.0, 0.0)
    clock.pass_time(1)
    assert (spent.spent(), spent.wall_left(), spent.waited_seconds) == (None, 15.0, 15.0)
    clock.pass_time(15)
    assert spent.spent() == "wall"
    # A gateway that was restarted can know less.
    spent.update_waited()
    assert spent.waited_seconds == 15.0


@pytest.mark.parametrize(("used", "is_spent"), [(9, False), (10, True), (11, True)])
@pytest.mark.parametrize("limit", ["compute", "wall", "cost", "steps", "tokens"])
def test_a_limit_is_spent_when_it_is_reached(limit: str, used: int, is_spent: bool) -> None:
    clock = Clock()
    spent = metered(clock, **{limit: 10})
    match limit:
        case "compute":
            clock.pass_time(0, busy=used)
        case "wall":
            clock.pass_time(used)
        case "cost":
            spent.charge_model(prompt_tokens=1, completion_tokens=1, cost_usd=used, seconds=0.0)
        case "steps":
            spent.steps += used
        case "tokens":
            # Only prompt tokens count.
            spent.charge_model(prompt_tokens=used, completion_tokens=500, cost_usd=None, seconds=0.0)
    assert spent.spent() == (limit if is_spent else None)


def test_a_portion_of_the_tokens_can_be_allowed() -> None:
    spent = metered(Clock(), tokens=100)
    assert spent.tokens_allowed == 100
    spent.allow(0.5)
    spent.charge_model(prompt_tokens=50, completion_tokens=0, cost_usd=None, seconds=0.0)
    assert (spent.tokens_allowed, spent.spent()) == (50, "tokens")
    spent.allow(1.0)
    assert spent.spent() is None


def test_costs_and_model_seconds_add_up_and_an_unknown_cost_is_none() -> None:
    spent = metered(Clock(), cost=1.0)
    spent.charge_model(prompt_tokens=1, completion_tokens=2, cost_usd=None, seconds=1.5)
    assert (spent.cost_usd, spent.spent()) == (None, None)
    for _ in range(2):
        spent.charge_model(prompt_tokens=10, completion_tokens=20, cost_usd=0.25, seconds=2.0)
    facts = (spent.prompt_tokens, spent.completion_tokens, spent.cost_usd, spent.model_seconds)
    assert facts == (21, 42, 0.5, 5.5)


def test_the_time_of_recorded_answers_passes_once_for_those_asked_at_once() -> None:
    clock = Clock()
    spent = metered(clock, wall=1000)
    clock.pass_time(1)
    for _ in range(8):
        spent.charge_call(Usage(recorded=1), 300.0, began=clock.wall)
    assert spent.wall_seconds == 301
    clock.pass_time(2)
    spent.charge_call(Usage(recorded=1), 10.0, began=clock.wall)
    assert spent.wall_seconds == 313
    # Asked for before the last one came, and answered after it.
    spent.charge_call(Usage(recorded=1), 15.0, began=clock.wall - 1)
    assert spent.wall_seconds == 317
    assert spent.model_seconds == 8 * 300 + 25


def test_of_several_limits_that_are_reached_the_first_is_named() -> None:
    clock = Clock()
    spent = metered(clock, compute=1, wall=1, steps=1, tokens=1, cost=1)
    spent.steps = 1
    assert spent.spent() == "steps"
    spent.charge_model(prompt_tokens=1, completion_tokens=0, cost_usd=1.0, seconds=0.0)
    assert spent.spent() == "tokens"
    clock.pass_time(1)
    assert spent.spent() == "wall"
    clock.pass_time(0, busy=1)
    assert spent.spent() == "compute"


@pytest.mark.parametrize("name", ["expert", "masked"])
def test_the_token_limit_is_the_papers_for_the_set_unless_the_task_has_one(name: str) -> None:
    task = Task.model_validate({"id": "t", "set": name, "query": "q", "answer": 1})
    assert budget_for(task).token_limit == TOKEN_BUDGETS[task.set]
    limited = task.model_copy(update={"limits": Limits(tokens=7)})
    assert budget_for(limited).token_limit == 7
