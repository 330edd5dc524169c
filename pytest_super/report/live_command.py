"""The live display of a subcommand: its activities, shown on the standard error while it is silent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import time
from typing import Self

from pytest_super.report.live import LiveDisplay, own_descriptor, style_of
from pytest_super.report.progress import activity_lines, clipped
from pytest_super.store.activity import Activity, Doing


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
        doings = dict(self._doings)
        return [clipped(self._title(), width), *activity_lines(doings, time(), width)]
