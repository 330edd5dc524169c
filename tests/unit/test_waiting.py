"""Which calls were waiting when a trial's time was over."""

from __future__ import annotations

from threading import Event, Thread
from time import monotonic

import pytest

from pytest_super.model.client import Waiting


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
