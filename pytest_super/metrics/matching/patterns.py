"""Patterns in Python's `re` syntax, searched under a time limit, and the windows of a long text."""

import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pytest_super.tasks.fields import COMMENT, PIECE

# Each character searched adds this much to a pattern's time limit, so that a long output alone does not
# exhaust it. It allows 10 million characters a second, 100 times slower than a usual search.
SECONDS_PER_CHARACTER = 1e-7


# Appended to a window that more text follows, so that `$` does not match at its end. No text contains this
# non-character.
SENTINEL = "\uffff"

# A text of up to this many overlaps is one window.
OVERLAPS = 8


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a text. Matches that begin at `start` or later, but before `stop`, belong to it."""

    text: str
    start: int
    stop: int


class Windows:
    """Cuts a text so that any `overlap` characters are in one window with the `overlap` before them.

    Stores at most nine overlaps and the latest piece.
    """

    def __init__(self, overlap: int) -> None:
        self._overlap = overlap
        self._size = OVERLAPS * overlap
        self._begin()

    def _begin(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._start = 0

    def push(self, piece: str) -> Iterator[Window]:
        """The windows that `piece` completes. Consume them before the next push."""
        self._parts.append(piece)
        self._length += len(piece)
        if self._length > self._size:
            yield from self._cut("".join(self._parts))

    def _cut(self, text: str) -> Iterator[Window]:
        stop = self._size - self._overlap
        offset = 0
        while len(text) - offset > self._size:
            yield Window(text[offset : offset + self._size] + SENTINEL, self._start, stop)
            offset += stop - self._overlap
            self._start = self._overlap
        self._parts = [text[offset:]]
        self._length = len(text) - offset

    def end(self) -> Window:
        """The last window, in which `$` matches at the end. The next push begins a new text."""
        text = "".join(self._parts)
        # + 1, because an empty match such as that of `$` begins after the last character.
        window = Window(text, self._start, len(text) + 1)
        self._begin()
        return window


class Pattern:
    """One landmark's pattern and the time that its searches can still use.

    The search uses `regex`, which can be stopped. Patterns that only `re` can compile (a set such as
    `[[:x:]]`) are searched by `re` without a time limit. Raises re.error for a pattern that `re` refuses.
    """

    def __init__(self, text: str, *, time_limit: float) -> None:
        self.text = text
        self.timed_out = False
        self._allowance = time_limit
        self._required = required_literals(text)
        self._compiled, self._is_limited = compile_pattern(text)

    def search(self, window: Window, is_refused: Callable[[str], bool] = lambda _: False) -> str | None:
        """The first match that begins in the window and is not refused; None, too, if time is up."""
        if any(window.text.find(literal, window.start) < 0 for literal in self._required):
            return None
        self._allowance += SECONDS_PER_CHARACTER * (len(window.text) - window.start)
        start = window.start
        try:
            # A later match belongs to the next window, which also has the text that follows it.
            while (match := self._next(window.text, start)) is not None and match.start() < window.stop:
                with self._charged():
                    if not is_refused(match[0]):
                        return str(match[0])
                start = max(match.end(), match.start() + 1)
        except TimeoutError:
            self.timed_out = True
        return None

    def _next(self, text: str, start: int) -> re.Match[str] | None:
        # `regex` raises ValueError for a limit below 0.
        limit = {"timeout": max(self._allowance, 1e-6)} if self._is_limited else {}
        with self._charged():
            match: re.Match[str] | None = self._compiled.search(text, start, **limit)
        return match

    @contextmanager
    def _charged(self) -> Iterator[None]:
        # Not the wall clock, so that a busy machine uses up no pattern's time.
        began = time.thread_time()
        yield
        self._allowance -= time.thread_time() - began


def compile_pattern(text: str) -> tuple[Any, bool]:
    """The compiled pattern, and whether its searches can be stopped."""
    import regex

    with warnings.catch_warnings():
        # `re` warns of sets such as `[[:x:]]`, but accepts them.
        warnings.simplefilter("ignore")
        # First by `re`, which decides what a valid pattern is.
        plain = re.compile(text)
        try:
            # V0 is the syntax of `re`; V1 reads sets differently.
            return regex.compile(_without_fuzziness(text), regex.V0), True
        except regex.error:
            return plain, False


def _without_fuzziness(text: str) -> str:
    """Escape braces that are not a quantifier: `loss{d}` is text to `re`, but a fuzzy match to `regex`."""
    return "".join(r"\{" if piece == "{" else piece for piece in PIECE.findall(text))


def required_literals(text: str) -> list[str]:
    """Texts that every match contains, as far as a simple scan finds them; [] if there are groups or `|`.

    Without this check `loss.*accuracy` takes quadratic time in an output that is full of `loss`.
    """
    runs = [""]
    for piece in PIECE.findall(text):
        if piece in "()|" or piece.startswith(COMMENT):
            return []
        if piece[0] == "\\" and len(piece) == 2 and not piece[1].isalnum():
            runs[-1] += piece[1]
        elif piece in "*?" or (piece[0] == "{" and len(piece) > 2):
            # The character before such a quantifier can be absent.
            runs[-1:] = [runs[-1][:-1], ""]
        elif len(piece) > 1 or piece in ".^$+":
            runs.append("")
        else:
            runs[-1] += piece
    return [run for run in runs if run]
