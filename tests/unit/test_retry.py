"""Retries and the rate limit of model calls, on a clock that jumps."""

import asyncio
import selectors
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.completion import Failure, ModelCallError
from pytest_super.model.retry import HEAD_START, LONGEST_RETRY_AFTER, MAX_SECONDS, RateLimiter, RetryPolicy

T = TypeVar("T")
ANSWER = "the answer"
TRANSIENT = ModelCallError(Failure.TRANSIENT, "the engine is overloaded")
UNCONNECTED = ModelCallError(Failure.TRANSIENT, "connection refused", is_unconnected=True)
LIMITED = ModelCallError(Failure.RATE_LIMITED, "too many requests")
UNCLEAR = ModelCallError(Failure.UNCLEAR, "half an answer")
FATAL = ModelCallError(Failure.FATAL, "wrong key")


class JumpingSelector(selectors.SelectSelector):
    """Lets time pass instead of waiting for it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "everybody waits, and nobody for the time"
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next thing that is due."""

    def __init__(self) -> None:
        self.selector = JumpingSelector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def retry_policy(limiter: RateLimiter | None = None, draw: float = 0.999) -> RetryPolicy:
    """The draw makes pauses as long as they can be."""
    return RetryPolicy(limiter, draw=lambda: draw)


class Script:
    """Calls that end as told, one after the other, from the last on all alike; each takes `seconds`."""

    def __init__(self, *outcomes: str | ModelCallError, seconds: float = 0.0) -> None:
        self.outcomes = list(outcomes)
        self.seconds = seconds
        self.times: list[float] = []
        self.under_way = 0
        self.most = 0

    async def __call__(self) -> str:
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        self.times.append(asyncio.get_running_loop().time())
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.under_way -= 1
        if isinstance(outcome, ModelCallError):
            raise outcome
        return outcome

    @property
    def waits(self) -> list[float]:
        return [round(after - before, 1) for before, after in zip(self.times, self.times[1:], strict=False)]


def outcome_of(script: Script, draw: float = 0.999) -> str:
    """How one call ends."""

    async def main() -> str:
        return await retry_policy(draw=draw).call(script)

    return run(main())


def failure_of(script: Script) -> ModelCallError:
    with pytest.raises(ModelCallError) as caught:
        outcome_of(script)
    return caught.value


# One call


def test_an_unclear_failure_is_retried_once() -> None:
    assert failure_of(Script(UNCLEAR)).message.startswith("gave up after 2 tries")
    assert outcome_of(Script(UNCLEAR, ANSWER)) == ANSWER
    assert outcome_of(Script(TRANSIENT, TRANSIENT, UNCLEAR, TRANSIENT, ANSWER)) == ANSWER
    assert failure_of(Script(UNCLEAR, TRANSIENT, UNCLEAR, ANSWER)).failure is Failure.UNCLEAR


@pytest.mark.parametrize(
    ("draw", "waits"),
    [(0.999, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 59.9]), (0.25, [0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0])],
)
def test_pauses_are_drawn_at_random_from_zero_and_double_up_to_a_minute(
    draw: float, waits: list[float]
) -> None:
    script = Script(*[TRANSIENT] * 7, ANSWER)
    assert outcome_of(script, draw) == ANSWER
    assert script.waits == waits


@pytest.mark.parametrize("error", [TRANSIENT, LIMITED])
def test_after_eight_tries_the_last_error_is_raised_with_their_number_and_time(error: ModelCallError) -> None:
    script = Script(error)
    failure = failure_of(script)
    assert len(script.times) == 8
    assert failure.failure is error.failure
    assert failure.is_final
    assert failure.message == f"gave up after 8 tries in 123 s: {error.message}"


@pytest.mark.parametrize("failure", [Failure.FATAL, Failure.CONTEXT, Failure.FILTERED, Failure.REFUSED])
def test_other_failures_are_final_at_once(failure: Failure) -> None:
    error = ModelCallError(failure, "no")
    script = Script(error)
    assert failure_of(script) is error
    assert len(script.times) == 1


def test_a_final_rate_limit_is_not_retried_and_slows_no_other_call() -> None:
    script = Script(ModelCallError(Failure.RATE_LIMITED, "scripted", is_final=True))

    shared = retry_policy()
    run(call_all(shared, [script]))
    assert shared.limiter.limit == 32
    assert len(script.times) == 1


def test_another_exception_passes_through_and_frees_the_slot() -> None:
    async def broken() -> str:
        raise ZeroDivisionError

    shared = retry_policy()
    with pytest.raises(ZeroDivisionError):
        run(shared.call(broken))
    assert shared.limiter.under_way == 0


def test_a_call_that_would_wait_for_more_than_five_minutes_is_given_up_at_once() -> None:
    script = Script(ModelCallError(Failure.RATE_LIMITED, "tomorrow", retry_after=86400.0))
    other = Script(ANSWER)
    policy = retry_policy()

    async def main() -> float:
        with pytest.raises(ModelCallError) as caught:
            await policy.call(script)
        asked = "it asks for a pause of 86400 s, and the longest is 300 s"
        assert caught.value.message == f"gave up after 1 try in 0 s: tomorrow: {asked}"
        await policy.call(other)
        return asyncio.get_running_loop().time()

    assert run(main()) == 0.0
    assert len(script.times) == 1


def calls_at(policy: RetryPolicy, *scripts: Script) -> list[ModelCallError]:
    """How the calls end, one after the other."""
    ended = []

    async def main() -> None:
        for script in scripts:
            with pytest.raises(ModelCallError) as caught:
                await policy.call(script)
            ended.append(caught.value)

    run(main())
    return ended


def test_a_run_none_of_whose_calls_has_connected_ends_at_the_first_that_is_given_up() -> None:
    first, second = Script(UNCONNECTED), Script(UNCONNECTED)
    failed, later = calls_at(retry_policy(), first, second)
    assert failed.failure is later.failure is Failure.FATAL
    assert "8 tries" in failed.message
    assert "has ever connected, so check the model's address" in failed.message
    assert (len(first.times), len(second.times)) == (8, 0)


def test_a_provider_that_has_answered_once_never_ends_the_run() -> None:
    policy = retry_policy()
    assert run(policy.call(Script(ANSWER))) == ANSWER
    (failed,) = calls_at(policy, Script(UNCONNECTED))
    assert failed.failure is Failure.TRANSIENT


def test_a_machine_that_cannot_connect_never_ends_a_run_that_has_answers() -> None:
    (failed,) = calls_at(RetryPolicy(draw=lambda: 0.5, has_answers=lambda: True), Script(UNCONNECTED))
    assert failed.failure is Failure.TRANSIENT


def test_a_provider_that_hangs_is_tried_twice() -> None:
    script = Script(TRANSIENT, seconds=600.0)
    assert failure_of(script).message.startswith("gave up after 2 tries in 1201 s")


@given(
    draws=st.lists(st.floats(0, 1, exclude_max=True), min_size=1),
    retry_after=st.none() | st.floats(0, 1e6),
    seconds=st.floats(0, 700),
)
def test_no_call_is_retried_after_its_time_is_over(
    draws: list[float], retry_after: float | None, seconds: float
) -> None:
    error = ModelCallError(Failure.RATE_LIMITED, "slow down", retry_after=retry_after)
    script = Script(error, seconds=seconds)

    async def main() -> float:
        drawn = cycle(draws)
        with pytest.raises(ModelCallError):
            await RetryPolicy(draw=lambda: next(drawn)).call(script)
        return asyncio.get_running_loop().time()

    assert run(main()) <= MAX_SECONDS + 2 * seconds + 1e-3
    assert (1 if retry_after and retry_after > LONGEST_RETRY_AFTER else 2) <= len(script.times) <= 8


def test_each_attempt_has_its_own_reservation_which_ends_before_the_pause() -> None:
    seen: list[tuple[int, str]] = []

    def note(event: str) -> None:
        seen.append((round(asyncio.get_running_loop().time()), event))

    @asynccontextmanager
    async def reserve() -> AsyncIterator[None]:
        if len(seen) == 9:
            raise PermissionError("spent")
        note("reserved")
        try:
            yield
        finally:
            note("freed")

    async def attempt() -> str:
        note("attempt")
        raise TRANSIENT

    async def main() -> float:
        with pytest.raises(PermissionError, match="spent"):
            await retry_policy().call(attempt, reserve)
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(7, rel=0.01)
    assert seen == [(moment, event) for moment in (0, 1, 3) for event in ("reserved", "attempt", "freed")]


def test_a_call_that_waits_for_a_reservation_takes_no_slot_from_others() -> None:
    async def main() -> str:
        shared = retry_policy(RateLimiter(1))
        freed = asyncio.Event()

        @asynccontextmanager
        async def reserve() -> AsyncIterator[None]:
            await freed.wait()
            yield

        waiting = asyncio.create_task(shared.call(Script(ANSWER), reserve))
        await asyncio.sleep(1)
        await shared.call(Script(ANSWER))
        freed.set()
        return await waiting

    assert run(main()) == ANSWER


# Many calls


async def call_all(shared: RetryPolicy, calls: Iterable[Callable[[], Awaitable[str]]]) -> list[Any]:
    return await asyncio.gather(*map(shared.call, calls), return_exceptions=True)


@pytest.mark.parametrize(
    ("failure", "others_ask_at"), [(Failure.RATE_LIMITED, 50.0), (Failure.TRANSIENT, 1.0)]
)
def test_only_a_rate_limit_pauses_all_calls_for_as_long_as_the_provider_asks(
    failure: Failure, others_ask_at: float
) -> None:
    failing = Script(ModelCallError(failure, "slow", retry_after=50.0), ANSWER)
    others = Script(ANSWER)

    async def main() -> None:
        shared = retry_policy()
        first = asyncio.create_task(shared.call(failing))
        await asyncio.sleep(1)
        await call_all(shared, [others] * 3)
        await first

    run(main())
    assert failing.times == [0.0, 50.0]
    assert others.times == [others_ask_at] * 3


def test_no_more_calls_are_under_way_than_the_limit() -> None:
    script = Script(ANSWER, seconds=1.0)
    assert len(run(call_all(retry_policy(RateLimiter(5, highest=5)), [script] * 23))) == 23
    assert script.most == 5
    assert max(script.times) == 4.0


def test_thirty_two_calls_start_at_once() -> None:
    script = Script(ANSWER, seconds=1.0)
    run(call_all(retry_policy(), [script] * 100))
    assert script.times.count(0.0) == 32


@pytest.mark.parametrize(("seconds", "others_ask_at"), [(2.0, 2.0), (60.0, 5.0)], ids=["answered", "slow"])
def test_the_first_call_has_a_head_start_of_five_seconds(seconds: float, others_ask_at: float) -> None:
    script = Script(ANSWER, seconds=seconds)
    run(call_all(retry_policy(RateLimiter(8, head_start=HEAD_START)), [script] * 4))
    assert script.times == [0.0, *[others_ask_at] * 3]


def test_a_wrong_key_costs_one_request_of_many_at_once() -> None:
    script = Script(FATAL, seconds=1.0)
    run(call_all(retry_policy(RateLimiter(8, head_start=HEAD_START)), [script] * 16))
    assert script.times == [0.0]


def test_after_as_many_successes_as_the_limit_the_limit_grows_by_one() -> None:
    script = Script(ANSWER, seconds=1.0)
    shared = retry_policy(RateLimiter(4, highest=6))
    for count, limit in ((3, 4), (1, 5), (5, 6), (6, 6), (6, 6)):
        run(call_all(shared, [script] * count))
        assert shared.limiter.limit == limit


@pytest.mark.parametrize(
    ("rejected", "calls", "moment", "limit"),
    [
        pytest.param(32, 32, 1.5, 16, id="together, once"),
        pytest.param(48, 32, 3.5, 8, id="later, again"),
        pytest.param(6, 6, 1.5, 3, id="fewer than the limit"),
    ],
)
def test_calls_that_are_rejected_halve_the_limit(
    rejected: int, calls: int, moment: float, limit: int
) -> None:
    script = Script(*[LIMITED] * rejected, ANSWER, seconds=1.0)

    async def main() -> int:
        shared = retry_policy()
        tasks = [asyncio.create_task(shared.call(script)) for _ in range(calls)]
        await asyncio.sleep(moment)
        found = shared.limiter.limit
        await asyncio.gather(*tasks)
        return found

    assert run(main()) == limit


def test_a_call_that_waits_for_its_retry_holds_no_slot() -> None:
    failing = Script(ModelCallError(Failure.TRANSIENT, "x", retry_after=90.0), ANSWER)
    others = Script(ANSWER)
    run(call_all(retry_policy(RateLimiter(1)), [failing, others]))
    assert others.times == [0.0]


def test_a_fatal_error_is_the_answer_to_every_later_call_without_asking() -> None:
    script = Script(FATAL)
    shared = retry_policy()
    outcomes = [*run(call_all(shared, [script])), *run(call_all(shared, [script] * 15))]
    assert {(error.failure, error.message) for error in outcomes} == {(FATAL.failure, "wrong key")}
    assert len(script.times) == 1
    assert len(set(map(id, outcomes))) == 16


def test_a_fatal_error_ends_the_calls_that_wait_for_a_slot() -> None:
    script = Script(FATAL, seconds=1.0)
    outcomes = run(call_all(retry_policy(RateLimiter(2)), [script] * 16))
    assert {error.failure for error in outcomes} == {Failure.FATAL}
    assert len(script.times) == 2


@given(
    st.lists(st.tuples(st.sampled_from("ATLF"), st.floats(0, 5), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 8),
)
def test_whatever_happens_all_calls_end_and_all_slots_are_free(
    plans: list[tuple[str, float, bool]], limit: int
) -> None:
    outcomes: dict[str, str | ModelCallError] = {"A": ANSWER, "T": TRANSIENT, "L": LIMITED, "F": FATAL}

    async def main() -> tuple[list[Any], RateLimiter]:
        shared = retry_policy(RateLimiter(limit, highest=8))
        calls = [
            asyncio.create_task(shared.call(Script(outcomes[kind], seconds=seconds)))
            for kind, seconds, _ in plans
        ]
        await asyncio.sleep(2)
        for call, (_, _, is_cancelled) in zip(calls, plans, strict=True):
            if is_cancelled:
                call.cancel()
        return await asyncio.gather(*calls, return_exceptions=True), shared.limiter

    results, used = run(main())
    assert len(results) == len(plans)
    assert used.under_way == 0
    assert 1 <= used.limit <= 8
