"""A long text cut into overlapping windows at offsets that do not depend on how it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
