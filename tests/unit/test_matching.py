"""Windows over a long text, and the time that a pattern can use to search them."""

from __future__ import annotations

import pytest

from pytest_super.metrics.matching import patterns
from pytest_super.metrics.matching.patterns import Pattern
from pytest_super.metrics.matching.windows import SENTINEL, Window, Windows

OVERLAP = 2
SIZE = 8 * OVERLAP
TEXT = "".join(chr(ord("a") + number) for number in range(26))


def windows(text: str) -> list[Window]:
    cut = Windows(OVERLAP)
    return [*cut.push(text), cut.end()]


def test_a_text_of_up_to_eight_overlaps_is_one_window() -> None:
    text = TEXT[:SIZE]
    assert windows(text) == [Window(text, 0, SIZE + 1)]


def test_a_longer_text_is_cut_into_windows_that_overlap_and_continue_each_other() -> None:
    first, last = windows(TEXT[: SIZE + 1])
    assert first == Window(TEXT[:SIZE] + SENTINEL, 0, SIZE - OVERLAP)
    assert last == Window(TEXT[SIZE - 2 * OVERLAP : SIZE + 1], OVERLAP, 2 * OVERLAP + 2)


def test_a_search_begins_once_at_each_character() -> None:
    text = TEXT * 3
    begun = "".join(window.text[window.start : window.stop] for window in windows(text))
    assert begun == text


def test_the_windows_do_not_depend_on_the_pieces() -> None:
    cut = Windows(OVERLAP)
    found = [window for character in TEXT * 2 for window in cut.push(character)]
    assert [*found, cut.end()] == windows(TEXT * 2)


def test_the_next_text_begins_anew() -> None:
    cut = Windows(OVERLAP)
    list(cut.push(TEXT))
    cut.end()
    list(cut.push("next"))
    assert cut.end() == Window("next", 0, 5)


class Clock:
    """A clock of processor time. Each search takes `step` seconds."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 100.0, step

    def thread_time(self) -> float:
        self.now += self.step
        return self.now


class Compiled:
    """Remembers how long it was allowed to search."""

    def __init__(self) -> None:
        self.limits: list[float] = []

    def search(self, _text: str, _start: int, *, timeout: float) -> None:
        self.limits.append(timeout)


def limits(window: Window, *, time_limit: float, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits of three searches, each of which takes a second."""
    pattern, compiled = Pattern("x", time_limit=time_limit), Compiled()
    monkeypatch.setattr(patterns, "time", Clock(1.0))
    monkeypatch.setattr(pattern, "_compiled", compiled)
    for _ in range(3):
        assert pattern.search(window) is None
    return compiled.limits


def test_each_search_uses_up_what_a_pattern_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = limits(Window("x", 0, 1), time_limit=1.5, monkeypatch=monkeypatch)
    assert found == pytest.approx([1.5, 0.5, 1e-6], abs=1e-5)


def test_each_character_that_is_searched_adds_to_what_a_pattern_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window = Window("x" * 2_000_000, 1_000_000, 2_000_000)
    found = limits(window, time_limit=5.0, monkeypatch=monkeypatch)
    assert found == pytest.approx([5.1, 4.2, 3.3], abs=1e-9)


def test_a_match_has_to_begin_before_the_end_of_the_window() -> None:
    pattern = Pattern("b", time_limit=1.0)
    assert pattern.search(Window("ab", 0, 1)) is None
    assert pattern.search(Window("ab", 0, 2)) is not None
    assert pattern.search(Window("ba", 1, 2)) is None
