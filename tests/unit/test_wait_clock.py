"""Which part of a trial's calls is waiting, on a manual clock."""

from contextlib import suppress
from threading import Event, Thread
from time import monotonic

import pytest

from pytest_super.model.client import Waiting
from pytest_super.model.completion import Failure, ModelCallError
from pytest_super.model.ledger import WaitClock
from pytest_super.testing import FakeClock

LIMITED = ModelCallError(Failure.RATE_LIMITED, "too many requests")
FILTERED = ModelCallError(Failure.FILTERED, "no")


class Waits:
    def __init__(self) -> None:
        self.time = FakeClock()
        self.waits = WaitClock(self.time)

    def attempt(self, seconds: float, error: ModelCallError | None = None) -> None:
        with suppress(ModelCallError), self.waits.attempt():
            self.time.sleep(seconds)
            if error is not None:
                raise error


def test_pauses_and_attempts_that_fail_are_waiting_and_the_answer_is_not() -> None:
    bench = Waits()
    with bench.waits.call():
        bench.time.sleep(1)
        bench.attempt(10, LIMITED)
        bench.time.sleep(100)
        assert bench.waits.seconds == 111
        bench.attempt(1000)
    bench.time.sleep(10_000)
    assert bench.waits.seconds == 111
    with bench.waits.call():
        bench.time.sleep(5)
    assert bench.waits.seconds == 116


def test_an_attempt_under_way_is_not_waiting_before_it_fails() -> None:
    bench = Waits()
    with bench.waits.call(), suppress(ModelCallError):
        bench.time.sleep(1)
        with bench.waits.attempt():
            bench.time.sleep(60)
            assert bench.waits.seconds == 1
            raise LIMITED
    assert bench.waits.seconds == 61


def test_a_final_failure_is_an_answer() -> None:
    bench = Waits()
    with bench.waits.call():
        bench.attempt(10, FILTERED)
    assert bench.waits.seconds == 0


def test_calls_at_once_wait_only_while_the_provider_works_on_none_of_them() -> None:
    bench = Waits()
    with bench.waits.call(), bench.waits.call():
        bench.time.sleep(1)
        with bench.waits.attempt():
            bench.time.sleep(10)
            # Another call fails and pauses meanwhile.
            bench.attempt(100, LIMITED)
            bench.time.sleep(1000)
        assert bench.waits.seconds == 1
        bench.time.sleep(5)
    assert bench.waits.seconds == 6


def test_calls_that_wait_at_once_wait_once() -> None:
    bench = Waits()
    with bench.waits.call(), bench.waits.call():
        with suppress(ModelCallError), bench.waits.attempt():
            bench.attempt(10, LIMITED)
            raise LIMITED
        bench.time.sleep(100)
    assert bench.waits.seconds == 110


def cut(waiting: Waiting) -> None:
    with pytest.raises(ConnectionError), waiting.call():
        raise ConnectionError


def test_a_call_that_is_cut_before_the_limit_does_not_count() -> None:
    left = [1.0]
    waiting = Waiting(lambda: left[0])
    cut(waiting)
    left[0] = 0.0
    assert waiting.at_limit() == 0
    cut(waiting)
    assert waiting.at_limit() > 0


def test_a_call_counts_until_the_limit_while_it_is_under_way_in_another_thread() -> None:
    began, ended = monotonic(), Event()
    waiting, is_begun = Waiting(lambda: began + 0.01 - monotonic()), Event()

    def call() -> None:
        with waiting.call():
            is_begun.set()
            ended.wait(30)

    thread = Thread(target=call)
    thread.start()
    assert is_begun.wait(30)
    while monotonic() < began + 0.1:
        pass
    assert waiting.at_limit() <= 0.01
    ended.set()
    thread.join()
    assert (waiting.at_limit(), waiting.longest > 0) == (0, True)
