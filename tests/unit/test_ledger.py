"""What trials have used: limits that one call passes at most, kept when the gateway is restarted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.completion import BudgetSpentError, ModelCallError, Usage
from pytest_super.model.ledger import Ledger
from pytest_super.model.token_estimate import UNBOUNDED, MaxUsage

TRIAL = "t/1.1"


def test_a_restarted_gateway_knows_how_long_a_trial_has_waited(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    Ledger(path, None).charge(TRIAL, used(1), UNBOUNDED, characters=1, waited_seconds=7.5)
    assert Ledger(path, None).account(TRIAL).waiting.seconds == 7.5


def used(prompt: int, cost: float | None = None) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=1, cost_usd=cost)


def charge(
    ledger: Ledger,
    prompt: int,
    cost: float | None = None,
    *,
    trial: str = TRIAL,
    characters: int = 400,
    most: MaxUsage = UNBOUNDED,
) -> None:
    """Book an answer."""
    ledger.charge(trial, used(prompt, cost), most, characters=characters)


def ledger_with(
    tmp_path: Path, max_cost: float | None = None, tokens: int | None = None, cost: float | None = None
) -> Ledger:
    ledger = Ledger(tmp_path / "calls.jsonl", max_cost)
    ledger.account(TRIAL).tokens.allow(tokens)
    ledger.account(TRIAL).cost.allow(cost)
    return ledger


def most(tokens: float, cost: float = 0.0) -> MaxUsage:
    return MaxUsage(prompt_tokens=tokens, cost_usd=cost)


@dataclass
class Calls:
    """Calls of trials, each made until it is ended; `events` are how they began and were refused."""

    ledger: Ledger
    events: list[str] = field(default_factory=list)
    under_way: dict[str, asyncio.Future[tuple[int, float]]] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def begin(self, name: str, bound: MaxUsage, trial: str = TRIAL, characters: int = 4) -> None:
        """Returns when the call is under way, waits or is refused."""
        self.tasks[name] = asyncio.ensure_future(self._make(name, bound, trial, characters))
        await settle()

    async def end(self, name: str, tokens: int = 1, cost: float = 0.0) -> None:
        """The call has used this much."""
        self.under_way[name].set_result((tokens, cost))
        await settle()

    async def cancel(self, name: str) -> None:
        self.tasks[name].cancel()
        await settle()

    @property
    def waiting(self) -> list[str]:
        return [name for name, task in self.tasks.items() if not task.done() and name not in self.under_way]

    async def _make(self, name: str, bound: MaxUsage, trial: str, characters: int) -> None:
        try:
            async with self.ledger.reserve(trial, characters, bound):
                self.events.append(name)
                self.under_way[name] = asyncio.get_running_loop().create_future()
                try:
                    tokens, cost = await self.under_way[name]
                finally:
                    del self.under_way[name]
                charge(self.ledger, tokens, cost, trial=trial, characters=characters, most=bound)
        except (BudgetSpentError, ModelCallError):
            self.events.append(f"{name} refused")


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def events_of(ledger: Ledger, play: Callable[[Calls], Awaitable[None]]) -> list[str]:
    """How the calls of a play began, none of which is left waiting at its end."""

    async def main() -> list[str]:
        calls = Calls(ledger)
        await play(calls)
        assert calls.waiting == []
        return calls.events

    return asyncio.run(main())


def reserve(ledger: Ledger, characters: int, bound: MaxUsage = UNBOUNDED, trial: str = TRIAL) -> None:
    """A call that is alone."""

    async def main() -> None:
        async with asyncio.timeout(10), ledger.reserve(trial, characters, bound):
            pass

    asyncio.run(main())


# One call


def test_a_call_that_is_expected_to_pass_the_token_limit_is_refused(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, tokens=100)
    with pytest.raises(BudgetSpentError, match="tokens"):
        reserve(ledger, 404)
    reserve(ledger, 400)
    charge(ledger, 60)
    with pytest.raises(BudgetSpentError, match="tokens"):
        reserve(ledger, 400)


def test_a_call_that_cannot_pass_the_limit_is_made_whatever_is_expected(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, tokens=100, cost=1.0)
    reserve(ledger, 4000, most(100, 1.0))
    with pytest.raises(BudgetSpentError, match="tokens"):
        reserve(ledger, 4000, most(101))


def test_a_limit_that_is_reached_is_spent(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, tokens=100, cost=1.0)
    charge(ledger, 99, cost=1.0)
    with pytest.raises(BudgetSpentError, match="cost"):
        reserve(ledger, 0, most(0))


def test_the_estimate_follows_what_the_provider_counts(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path)
    assert ledger.estimate(TRIAL, 400) == (100, 0.0)
    charge(ledger, 200, cost=0.5)
    assert ledger.estimate(TRIAL, 800) == (300, 0.75)
    assert ledger.estimate(TRIAL, 40) == (110, 0.275)
    assert ledger.estimate("new/1.1", 800) == (200, 0.5)


@pytest.mark.parametrize(
    ("tokens", "characters", "ratio"),
    [
        (900, 999, 0.25),  # too short to say anything
        (900, 1000, 0.9),
        (500, 1000, 0.5),
        (200, 1000, 0.25),
        (1400, 1000, 1.4),
        (9000, 1000, 1.5),
    ],
)
def test_longer_prompts_are_estimated_by_the_tokens_a_character_of_the_last_one(
    tmp_path: Path, tokens: int, characters: int, ratio: float
) -> None:
    ledger = ledger_with(tmp_path)
    charge(ledger, tokens, characters=characters)
    assert ledger.estimate(TRIAL, characters + 1000)[0] - tokens == 1000 * ratio


def test_the_expected_cost_of_a_call_follows_the_trials_own_calls(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path)
    charge(ledger, 100, cost=100.0, trial="dear/1.1")
    charge(ledger, 100, cost=0.5)
    assert ledger.estimate(TRIAL, 400) == (100, 0.5)


def test_an_answer_that_is_thrown_away_is_charged_and_does_not_change_the_estimate(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, tokens=1000)
    ledger.charge(TRIAL, used(900, 0.5), UNBOUNDED, started="now")
    account = ledger.account(TRIAL)
    assert (account.usage.prompt_tokens, account.usage.cost_usd, account.answered) == (900, 0.5, 0)
    assert ledger.estimate(TRIAL, 200)[0] == 50
    with pytest.raises(BudgetSpentError, match="tokens"):
        reserve(ledger, 404)


def test_trials_have_their_own_limits_and_share_the_runs_cost(tmp_path: Path) -> None:
    ledger = ledger_with(tmp_path, max_cost=1.0, tokens=10)
    charge(ledger, 10_000, cost=1.0, trial="other/1.1")
    with pytest.raises(ModelCallError, match=r"\$1.0000 of the \$1 "):
        reserve(ledger, 4)


def test_a_new_ledger_continues_the_file_of_the_last_one_even_after_half_a_line(tmp_path: Path) -> None:
    first = ledger_with(tmp_path)
    charge(first, 100, cost=0.5)
    with (tmp_path / "calls.jsonl").open("a") as file:
        file.write('{"trial": "t/1.1", "prom')
    second = ledger_with(tmp_path, max_cost=0.5)
    assert (second.account(TRIAL).usage.prompt_tokens, second.account(TRIAL).answered) == (100, 1)
    with pytest.raises(ModelCallError):
        reserve(second, 4)
    charge(second, 10)
    assert ledger_with(tmp_path).account(TRIAL).usage.prompt_tokens == 110


# Calls at once


def test_calls_that_fit_together_are_under_way_at_once(tmp_path: Path) -> None:
    async def play(calls: Calls) -> None:
        for name in "abc":
            await calls.begin(name, most(100, 0.1))
        assert [*calls.under_way] == ["a", "b", "c"]

    ledger = ledger_with(tmp_path, tokens=300, cost=1.0, max_cost=1.0)
    assert events_of(ledger, play) == ["a", "b", "c"]


@pytest.mark.parametrize("bound", [most(100, 9.0), most(1e9, 0.1), UNBOUNDED], ids=["cost", "tokens", "any"])
def test_a_call_that_does_not_fit_beside_others_waits_until_it_is_alone(
    tmp_path: Path, bound: MaxUsage
) -> None:
    async def play(calls: Calls) -> None:
        await calls.begin("a", most(100, 0.1))
        await calls.begin("b", most(100, 0.1))
        await calls.begin("large", bound)
        await calls.end("a")
        assert calls.waiting == ["large"]
        await calls.end("b")
        assert [*calls.under_way] == ["large"]

    events_of(ledger_with(tmp_path, tokens=1000, cost=1.0), play)


def test_later_small_calls_do_not_keep_a_large_one_waiting(tmp_path: Path) -> None:
    async def play(calls: Calls) -> None:
        await calls.begin("a", most(100))
        await calls.begin("large", UNBOUNDED)
        await calls.begin("b", most(100))
        assert calls.waiting == ["large", "b"]
        await calls.end("a")
        assert calls.waiting == ["b"]
        await calls.end("large")

    assert events_of(ledger_with(tmp_path, tokens=1000), play) == ["a", "large", "b"]


def test_a_call_that_waits_for_its_trials_limit_keeps_no_other_trial_waiting(tmp_path: Path) -> None:
    async def play(calls: Calls) -> None:
        await calls.begin("a", most(900, 0.1))
        await calls.begin("b", most(900, 0.1))
        await calls.begin("other", most(900, 0.1), trial="other/1.1")
        assert [*calls.under_way] == ["a", "other"]
        await calls.end("a")

    # Enough for two of the three calls.
    events_of(ledger_with(tmp_path, tokens=1000, max_cost=0.25), play)


def test_a_waiting_call_is_made_when_the_limit_rises(tmp_path: Path) -> None:
    async def play(calls: Calls) -> None:
        await calls.begin("a", most(900))
        await calls.begin("b", most(900))
        assert calls.waiting == ["b"]
        calls.ledger.account(TRIAL).tokens.allow(2000)
        await settle()

    assert events_of(ledger_with(tmp_path, tokens=1000), play) == ["a", "b"]


def test_after_a_call_used_more_than_it_reserved_later_calls_reserve_more(tmp_path: Path) -> None:
    async def play(calls: Calls) -> None:
        await calls.begin("a", most(100))
        await calls.end("a", tokens=400)
        await calls.begin("b", most(100))
        await calls.begin("c", most(100))
        assert calls.waiting == ["c"]
        await calls.end("b", tokens=100)

    assert events_of(ledger_with(tmp_path, tokens=1000), play) == ["a", "b", "c"]


LIMIT = st.none() | st.integers(1, 100)
CALL = st.tuples(
    st.sampled_from(["a/1.1", "b/1.1"]),
    st.integers(0, 400),  # characters
    st.integers(0, 60) | st.just(inf),  # the most that it can use
    st.integers(0, 60) | st.just(inf),
    st.floats(0, 1),  # what it uses of that
    st.floats(0, 1),
)
# Begin the next call, or end or cancel the one at this place among those there are.
EVENT = st.tuples(st.sampled_from(["begin", "begin", "end", "end", "cancel"]), st.integers(0, 50))


def share(amount: float, part: float) -> int:
    return int(min(amount, 150) * part)


# Without a file, which would take milliseconds for each call.
@mock.patch("pytest_super.model.ledger.append", mock.Mock())
@given(limits=st.tuples(LIMIT, LIMIT, LIMIT), plans=st.lists(CALL, max_size=12), events=st.lists(EVENT))
def test_in_any_order_of_events_one_call_at_most_passes_a_limit_and_all_end(
    limits: tuple[int | None, int | None, int | None],
    plans: list[tuple[str, int, float, float, float, float]],
    events: list[tuple[str, int]],
) -> None:
    ledger = Ledger(Path("no-calls.jsonl"), limits[2])
    for trial in ("a/1.1", "b/1.1"):
        ledger.account(trial).tokens.allow(limits[0])
        ledger.account(trial).cost.allow(limits[1])
    booked: list[tuple[str, int, int]] = []

    async def end(calls: Calls, name: str) -> None:
        trial, _, tokens, cost, *parts = plans[int(name)]
        booked.append((trial, share(tokens, parts[0]), share(cost, parts[1])))
        await calls.end(name, *booked[-1][1:])

    async def main() -> None:
        calls, left = Calls(ledger), iter(enumerate(plans))
        for kind, place in [*events, *[("begin", 0)] * len(plans)]:
            there = [*calls.under_way] if kind == "end" else [*calls.under_way, *calls.waiting]
            if kind == "begin" and (plan := next(left, None)):
                number, (trial, characters, tokens, cost, *_) = plan
                await calls.begin(str(number), most(tokens, cost), trial, characters)
            elif kind == "end" and there:
                await end(calls, there[place % len(there)])
            elif kind == "cancel" and there:
                await calls.cancel(there[place % len(there)])
        while calls.under_way:
            await end(calls, next(iter(calls.under_way)))
        assert calls.waiting == []

    asyncio.run(main())
    for trial in ("a/1.1", "b/1.1"):
        assert is_passed_by_one_at_most([tokens for name, tokens, _ in booked if name == trial], limits[0])
        assert is_passed_by_one_at_most([cost for name, _, cost in booked if name == trial], limits[1])
    assert is_passed_by_one_at_most([cost for *_, cost in booked], limits[2])


def is_passed_by_one_at_most(uses: list[int], limit: int | None) -> bool:
    """All but the last that used anything stay below the limit."""
    real = [use for use in uses if use]
    return limit is None or not real or sum(real[:-1]) < limit
