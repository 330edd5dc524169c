"""The live display: lines that say what is going on, whenever nothing else is written for a while."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from time import monotonic
from typing import NamedTuple, TextIO

DEFAULT_SIZE = os.terminal_size((80, 24))
# Seconds between two looks at the clock.
TICK = 0.5


class Style(NamedTuple):
    """When and how the lines are shown."""

    period: float
    """Seconds from one display to the next."""
    quiet: float
    """Seconds without other output before a display."""
    below_cursor: bool = False
    """Drawn over each other below the cursor; otherwise each display is one more line of the output."""


# Silence ends long before 10 s.
TERMINAL = Style(period=1.0, quiet=2.0, below_cursor=True)
# A terminal without a cursor that can be moved, or on which tests write what they like.
SIMPLE_TERMINAL = Style(period=10.0, quiet=1.0)
LOG = Style(period=60.0, quiet=1.0)


def style_of(descriptor: int, *, is_shared: bool = False) -> Style:
    """The style for an output. `is_shared` means that others write to it without a `touch`."""
    if not os.isatty(descriptor):
        return LOG
    return SIMPLE_TERMINAL if is_shared or os.environ.get("TERM", "dumb") == "dumb" else TERMINAL


def own_descriptor(stream: TextIO, stack: ExitStack) -> int | None:
    """A copy of the stream's file descriptor, closed with the stack; None if the stream is not a file.

    A copy remains what it is while pytest captures the output of a test.
    """
    try:
        descriptor = os.dup(stream.fileno())
    # In a notebook the standard streams are not files.
    except OSError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor


class LiveDisplay:
    """Shows lines in a thread of its own. Use as a context manager, in which the thread runs.

    Whoever writes to the same output calls `touch` first. What is drawn below the cursor never overwrites
    what others have written: the cursor returns to its place, and only what is below it is erased.
    """

    def __init__(
        self,
        lines: Callable[[int], Sequence[str]],
        descriptor: int,
        style: Style,
        *,
        column: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`lines` makes the lines, which have at most the given width; an empty list shows nothing.

        `descriptor` is a file descriptor that stays open. `column` returns the place of the cursor in its
        line.
        """
        self._lines = lines
        self._descriptor = descriptor
        self._style = style
        self._column = column
        self._clock = clock
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="super-live")
        self._is_drawn = False
        self._touched = self._shown = clock()

    def __enter__(self) -> LiveDisplay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Idempotent."""
        self._ended.set()
        self._thread.join()
        self.touch()

    def touch(self) -> None:
        """Erase what is drawn, because something else is about to be written."""
        with self._lock:
            self._touched = self._clock()
            if self._is_drawn:
                self._is_drawn = False
                self._write("\x1b[J")

    def tick(self) -> None:
        """Show the lines if it is time."""
        if not self._is_due():
            return
        size = self._size()
        # Outside the lock, because they are read from files.
        lines = list(self._lines(size.columns - 1))
        with self._lock:
            if lines and self._is_due():
                self._shown = self._clock()
                self._is_drawn = self._style.below_cursor
                self._write(self._drawing(lines, size) if self._is_drawn else self._line(lines))

    def _is_due(self) -> bool:
        now = self._clock()
        if self._ended.is_set():
            return False
        return now - self._touched >= self._style.quiet and now - self._shown >= self._style.period

    def _drawing(self, lines: Sequence[str], size: os.terminal_size) -> str:
        """The lines below the cursor, which then returns to its place."""
        # Higher than the screen, moving up would not lead back.
        lines = lines[: max(1, size.lines - 2)]
        column = self._column() % size.columns
        right = f"\x1b[{column}C" if column else ""
        return "".join(["\x1b[J", *(f"\n{line}" for line in lines), f"\x1b[{len(lines)}A\r", right])

    def _line(self, lines: Sequence[str]) -> str:
        start = "\n" if self._column() else ""
        return f"{start}{' | '.join(line.strip() for line in lines)}\n"

    def _write(self, text: str) -> None:
        # A terminal that has gone is pytest's affair.
        with suppress(OSError):
            os.write(self._descriptor, text.encode("utf-8"))

    def _size(self) -> os.terminal_size:
        try:
            size = os.get_terminal_size(self._descriptor)
        except OSError:
            return DEFAULT_SIZE
        # Some terminals report 0 by 0.
        return size if size.columns > 20 else DEFAULT_SIZE

    def _work(self) -> None:
        while not self._ended.wait(TICK):
            self.tick()
