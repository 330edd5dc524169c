"""What trials have used of a model: limits that no call passes twice, kept over the gateway's death."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.completion import BudgetSpentError
from pytest_super.model.ledger import Account, Ledger, RunCostError

if TYPE_CHECKING:
    from pathlib import Path


def used(prompt: int, cost: float | None = None) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": 1, "cost_usd": cost}


def ledger_with(tmp_path: Path, max_cost: float | None = None, **limits: Any) -> Ledger:
    ledger = Ledger(tmp_path / "calls.jsonl", max_cost)
    account = ledger.account("t/1.1")
    for name, value in limits.items():
        setattr(account, name, value)
    return ledger


def test_a_call_that_would_pass_the_token_limit_is_refused(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, token_limit=100)
    with pytest.raises(BudgetSpentError, match="tokens"), ledger.reserve("t/1.1", 404):
        pass
    with ledger.reserve("t/1.1", 400):
        ledger.charge("t/1.1", 400, used(60))
    with pytest.raises(BudgetSpentError, match="tokens"), ledger.reserve("t/1.1", 400):
        pass


def test_the_estimate_follows_what_the_provider_counts(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path)
    assert ledger.estimate("t/1.1", 400) == (100, 0.0)
    ledger.charge("t/1.1", 400, used(200, cost=0.5))
    assert ledger.estimate("t/1.1", 800) == (300, 0.75)
    assert ledger.estimate("t/1.1", 40) == (110, 0.275)
    assert ledger.estimate("new/1.1", 800) == (200, 0.5)


def test_calls_at_once_pass_no_limit_together(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, token_limit=100)
    with (
        ledger.reserve("t/1.1", 240),
        pytest.raises(BudgetSpentError),
        ledger.reserve("t/1.1", 240),
    ):
        pass
    with ledger.reserve("t/1.1", 240):
        pass


def test_trials_do_not_share_their_limits_but_the_runs_cost(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, max_cost=1.0, token_limit=10)
    ledger.charge("other/1.1", 4, used(10_000, cost=1.0))
    with pytest.raises(RunCostError, match=r"\$1.0000 of the \$1 "), ledger.reserve("t/1.1", 4):
        pass


def test_a_new_ledger_knows_what_the_last_one_booked_also_after_half_a_line(tmp_path: Path) -> None:
    first = ledger_with(tmp_path)
    first.charge("t/1.1", 400, used(100, cost=0.5))
    with (tmp_path / "calls.jsonl").open("a") as file:
        file.write('{"trial": "t/1.1", "prom')
    second = ledger_with(tmp_path)
    assert (second.account("t/1.1").prompt_tokens, second.account("t/1.1").calls) == (100, 1)
    second.charge("t/1.1", 400, used(10))
    assert ledger_with(tmp_path).account("t/1.1").prompt_tokens == 110


@given(
    limit=st.integers(1, 10_000),
    calls=st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)), max_size=30),
)
def test_however_wrong_the_estimates_a_limit_is_passed_by_one_call_at_most(
    limit: int, calls: list[tuple[int, int]]
) -> None:
    account = Account(token_limit=limit)
    passed = 0
    for estimated, tokens in calls:
        try:
            account.refuse_beyond(estimated, 0.0)
        except BudgetSpentError:
            continue
        account.prompt_tokens += tokens
        passed += account.prompt_tokens > limit
    assert passed <= 1
