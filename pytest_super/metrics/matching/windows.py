"""A long text cut into overlapping windows at offsets that do not depend on how it arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Closes a window that has text after it, so that `$` does not match there: a non-character no text holds.
SENTINEL = "\uffff"

# A text of up to this many overlaps is one window.
OVERLAPS = 8


@dataclass(frozen=True, slots=True)
class Window:
    """A search begins at `start`, after what is only context, for a match that begins before `stop`."""

    text: str
    start: int
    stop: int


class Windows:
    """Every stretch of up to `overlap` characters lies, with `overlap` before it, whole in one window.

    Holds at most nine overlaps and the piece just pushed.
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
        """The windows that `piece` completes; to be consumed before the next push."""
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
        """The last window, in which `$` matches at the end; the next push begins another text."""
        text = "".join(self._parts)
        window = Window(text, self._start, len(text) + 1)
        self._begin()
        return window
