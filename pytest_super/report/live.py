"""The live display: lines that say what is going on, whenever nothing else is written for a while."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic, time
from typing import NamedTuple, Self, TextIO

from pytest_super.store.activity import Activity, Doing
from pytest_super.words import printable_line, shortened

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
    """A copy of the stream's file descriptor, which capturing leaves as it is; None if it is not a file."""
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

    def __enter__(self) -> Self:
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


MOST_ACTIVITIES = 4
# Of a name, when its line is too long.
SHORTEST_NAME = 16


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is."""

    all: int
    """Of its trials."""
    done: int
    running: int
    solved: int
    errors: int
    tokens: int
    cost_usd: float | None
    seconds: float
    """Since the first trial began."""
    seconds_of_done: float
    """The same when the last trial ended that is done."""

    @property
    def seconds_left(self) -> float:
        """The time that trials have taken until now; 0 if that is not known, or has been exceeded."""
        whole = self.seconds_of_done / self.done * self.all if self.done else 0.0
        return max(0.0, whole - self.seconds)

    def __str__(self) -> str:
        return ", ".join(self._facts())

    def _facts(self) -> Iterator[str]:
        yield f"{self.done}/{self.all} done"
        yield f"{self.running} running"
        yield f"{self.solved} solved"
        if self.errors:
            yield f"{self.errors} errors" if self.errors > 1 else "1 error"
        if self.tokens:
            yield f"{short_number(self.tokens)} tokens"
        if self.cost_usd is not None:
            yield f"${self.cost_usd:.{2 if self.cost_usd < 100 else 0}f}"
        if self.seconds_left:
            yield f"{duration(self.seconds_left)} left"


def short_number(number: int) -> str:
    """Write a number below a billion in at most 5 characters."""
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}" if number < 1000 * unit else f"{number // unit}{name}"
    return str(number)


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.{int(minutes < 600)}f} h"


def activity_lines(activities: Mapping[str, Doing], now: float, width: int) -> list[str]:
    """A line for each of those that last longest, which fits the width. The keys are names."""
    longest = sorted(activities.items(), key=lambda item: item[1].since)[:MOST_ACTIVITIES]
    lines = []
    for name, doing in longest:
        rest = printable_line(f"  {duration(max(0.0, now - doing.since))}  {doing}")
        lines.append(fitted(f"  {shortened(name, max(SHORTEST_NAME, width - len(rest) - 2))}{rest}", width))
    return lines


def fitted(text: str, width: int) -> str:
    """The text on one line of at most this many cells: a character that is not ASCII can have two."""
    line = printable_line(text).replace("\t", " ")
    return shortened("".join(one if one.isascii() or one == "…" else "?" for one in line), width)


class LiveCommand:
    """Use as a context manager. Inside, all lines are printed by `print_line`, from any thread."""

    def __init__(self, title: Callable[[], str]) -> None:
        """`title` is asked for each display."""
        self.activities: dict[str, Activity] = {}
        """Those under way, by name."""
        self._title = title
        self._doings: dict[str, Doing] = {}
        self._display: LiveDisplay | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        # The standard output is for the lines that a user can want in a file.
        descriptor = own_descriptor(sys.stderr, self._open)
        if descriptor is not None:
            self._display = LiveDisplay(self.lines, descriptor, style_of(descriptor))
            self._open.enter_context(self._display)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def print_line(self, line: str) -> None:
        if self._display is not None:
            self._display.touch()
        # In one call, so that the lines of several threads do not mix.
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    @contextmanager
    def activity(self, name: str, what: str) -> Iterator[Activity]:
        """An activity that is shown until the block ends."""
        self.activities[name] = Activity(partial(self._doings.__setitem__, name), what)
        try:
            yield self.activities[name]
        finally:
            del self.activities[name], self._doings[name]

    def lines(self, width: int) -> list[str]:
        """Called in the display's thread."""
        return [fitted(self._title(), width), *activity_lines(dict(self._doings), time(), width)]
