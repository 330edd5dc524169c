"""What a trial has used, told by its calls and by its model's books."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.completion import Usage
from pytest_super.tasks.task import Limits
from pytest_super.trial.budget import Budget

COSTS = st.none() | st.integers(0, 64).map(lambda n: n / 64)
CALLS = st.lists(
    st.builds(Usage, prompt_tokens=st.integers(0, 99), completion_tokens=st.integers(0, 9), cost_usd=COSTS)
)


def budget(tokens: int = 1000) -> Budget:
    return Budget(Limits(), tokens=tokens, clock=lambda: 0.0)


def sums(calls: list[Usage]) -> tuple[int, int, float]:
    costs = sum(call.cost_usd or 0.0 for call in calls)
    return sum(c.prompt_tokens for c in calls), sum(c.completion_tokens for c in calls), costs


def facts(used: Usage) -> dict[str, float | None]:
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "cost_usd": used.cost_usd,
    }


@given(own=CALLS, told=CALLS, untold=CALLS, later=CALLS)
def test_books_stand_for_the_calls_of_the_model_and_for_nothing_else(
    own: list[Usage], told: list[Usage], untold: list[Usage], later: list[Usage]
) -> None:
    spent = budget()
    for used in own:
        spent.charge_model(**facts(used), seconds=0.0)  # type: ignore[arg-type]
    booked: list[Usage] = []
    for told_now in (told, later):
        for used in told_now:
            spent.charge_call(**facts(used), seconds=0.0)  # type: ignore[arg-type]
        booked += [*told_now, *untold]
        prompt, completion, cost = sums(booked)
        is_priced = any(used.cost_usd is not None for used in booked)
        spent.charge_usage(
            Usage(prompt_tokens=prompt, completion_tokens=completion, cost_usd=cost if is_priced else None)
        )
    assert (spent.prompt_tokens, spent.completion_tokens, spent.cost_usd or 0.0) == sums([*own, *booked])


def test_what_the_books_tell_counts_for_the_limits() -> None:
    spent = budget(tokens=100)
    spent.charge_call(prompt_tokens=60, completion_tokens=1, cost_usd=0.5, seconds=2.0)
    assert spent.spent() is None
    spent.charge_usage(Usage(prompt_tokens=120, completion_tokens=2, cost_usd=1.0))
    assert (spent.spent(), spent.cost_usd, spent.model_seconds) == ("tokens", 1.0, 2.0)
