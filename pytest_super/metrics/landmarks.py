"""Landmarks (SUPER, 3.1.2): the portion of a task's patterns that appear in the agent's outputs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.metrics.matching.patterns import Pattern
from pytest_super.metrics.matching.plain_text import PlainText, plain
from pytest_super.metrics.matching.windows import SENTINEL, Window, Windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.metrics.matching.patterns import Match

WINDOW = 32 * 1024
TIME_LIMIT = 10.0
PIECE = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Landmark:
    """What became of one landmark."""

    pattern: str
    step: int | None = None
    """Number of the step whose output first held it; None: not hit."""
    is_echo: bool = False
    """The matched text stands in that cell's own source, as in `print("training completed")`."""
    timed_out: bool = False
    """Its search took too long and was given up for the rest of the trial."""

    @property
    def is_hit(self) -> bool:
        return self.step is not None


class LandmarkMatcher:
    """Finds a trial's landmarks while the output of its cells streams by.

    A cell's output is one text: escape sequences deleted, CRLF, LF and CR each one blank; `^` and `$` are
    its beginning and end. The hits do not depend on how it is cut into pieces. An output of up to
    8 * `window` characters is searched as a whole. In a longer one every match is found that, with all
    that its lookarounds look at, is no longer than `window`; a longer match is found when it lies within
    one block of the text, and a pattern without `$` that runs on (`loss.*`) is taken when a block ends.
    `time_limit` is the seconds of processor time that a pattern may use in the trial, plus one for every
    10 million characters searched; after that it is `timed_out` and not tried again.

    `feed` may be called from another thread than the rest.
    """

    def __init__(
        self, patterns: Sequence[str], *, window: int = WINDOW, time_limit: float = TIME_LIMIT
    ) -> None:
        self._patterns = [Pattern(text, time_limit=time_limit) for text in patterns]
        self._found = [Landmark(pattern=text) for text in patterns]
        self._text = PlainText()
        self._windows = Windows(window)
        self._lock = threading.Lock()
        self._source: str | None = None
        self._step = 0
        self._new_hits: list[int] = []

    def begin_cell(self, source: str, *, step: int | None = None) -> None:
        """What is fed from now on is the output of this cell; `step` counts on by itself when not given.

        A cell that was not ended is ended first.
        """
        with self._lock:
            self._close()
            self._source = plain(source)
            self._step = self._step + 1 if step is None else step
            self._new_hits = []

    def feed(self, text: str) -> None:
        """More output of the cell; what comes when no cell has begun is nobody's and is ignored."""
        with self._lock:
            for offset in range(0, len(text), PIECE):
                if self._source is None or not self._sought:
                    return
                for window in self._windows.push(self._text.feed(text[offset : offset + PIECE])):
                    self._search(window)

    def end_cell(self) -> list[int]:
        """The cell is idle or given up: indices of the landmarks first seen in it."""
        with self._lock:
            self._close()
            return list(self._new_hits)

    @property
    def landmarks(self) -> list[Landmark]:
        with self._lock:
            return list(self._found)

    @property
    def hits(self) -> list[bool]:
        return [landmark.is_hit for landmark in self.landmarks]

    @property
    def new_hits(self) -> list[int]:
        """Indices of the landmarks first seen in the last cell, so far."""
        with self._lock:
            return list(self._new_hits)

    @property
    def score(self) -> float | None:
        """The portion that was hit; None for a task without landmarks."""
        hits = self.hits
        return sum(hits) / len(hits) if hits else None

    @property
    def _sought(self) -> list[int]:
        return [i for i, found in enumerate(self._found) if not (found.is_hit or found.timed_out)]

    def _close(self) -> None:
        window = self._windows.end()
        self._text.end()
        if self._source is not None:
            self._search(window)
        self._source = None

    def _search(self, window: Window) -> None:
        for index in self._sought:
            pattern = self._patterns[index]
            match = pattern.search(window)
            if match is not None:
                self._record(index, match)
            elif pattern.timed_out:
                self._found[index] = Landmark(pattern=pattern.text, timed_out=True)

    def _record(self, index: int, match: Match) -> None:
        text = match[0].rstrip(SENTINEL).strip()
        is_echo = bool(text) and text in (self._source or "")
        self._found[index] = Landmark(pattern=self._patterns[index].text, step=self._step, is_echo=is_echo)
        self._new_hits.append(index)
