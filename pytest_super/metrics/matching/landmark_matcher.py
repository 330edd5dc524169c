"""Finds the landmarks of a trial while the output of its cells streams by."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from pytest_super.metrics.evidence import Landmark
from pytest_super.metrics.matching.patterns import SENTINEL, Pattern, Window, Windows
from pytest_super.metrics.matching.plain_text import PlainText, plain

WINDOW = 32 * 1024
TIME_LIMIT = 10.0
# The number of a step that is not known yet.
UNPLACED = 0


class LandmarkMatcher:
    """Finds a trial's landmarks while the output of its cells streams by.

    A cell's output is one text: escape sequences are deleted, each line end becomes one blank, and `^` and
    `$` match its beginning and end, however it is cut into pieces. In an output of more than 8 * `window`
    characters, matches of up to `window` characters, with their lookarounds, are found. A pattern can use
    `time_limit` seconds of processor time in the trial, and one more for every 10 million characters.

    `feed` can be called from a different thread than the other methods.
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
        self._counts_echoes = True
        self._step = 0

    def begin_cell(self, source: str, *, step: int = UNPLACED, counts_echoes: bool = True) -> None:
        """Begin a cell: what is fed from now on is its output. Ends a cell that is still open.

        Without `counts_echoes`, text that the source contains is not a hit.
        """
        with self._lock:
            self._close()
            # In the same form as the output, so that matched text can be looked for in it.
            self._source = plain(source)
            self._counts_echoes = counts_echoes
            self._step = step

    def add_source(self, text: str) -> None:
        """Add to the source of the cell that is open: its output can also repeat this."""
        with self._lock:
            if self._source is not None:
                self._source += f" {plain(text)}"

    def feed(self, text: str) -> None:
        """Search more output of the cell. Output that arrives while no cell is open is ignored."""
        with self._lock:
            if self._source is None or not self._sought:
                return
            for window in self._windows.push(self._text.feed(text)):
                self._search(window)

    def search_apart(self, source: str, text: str, *, step: int) -> None:
        """Search a whole text beside the output of the cell that is open.

        `source` is what asked for it: text that it contains is not a hit.
        """
        windows = Windows(WINDOW)
        with self._lock:
            held = self._source, self._step, self._counts_echoes
            self._source, self._step, self._counts_echoes = plain(source), step, False
            for window in windows.push(plain(text)):
                self._search(window)
            self._search(windows.end())
            self._source, self._step, self._counts_echoes = held

    def place(self, step: int) -> None:
        """Say which step the cell without a number has become."""
        with self._lock:
            self._found = [
                replace(found, step=step) if found.step == UNPLACED else found for found in self._found
            ]
            # `$` matches only when the cell ends, which is later.
            self._step = self._step or step

    def end_cell(self) -> None:
        """End the cell: `$` matches only now. Later output of a cell that timed out is ignored."""
        with self._lock:
            self._close()

    @property
    def landmarks(self) -> list[Landmark]:
        with self._lock:
            return list(self._found)

    @property
    def hits(self) -> list[bool]:
        return [landmark.is_hit for landmark in self.landmarks]

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
            matched = pattern.search(window, lambda text: not self._counts_echoes and self._is_echo(text))
            if matched is not None:
                self._found[index] = Landmark(
                    pattern=pattern.text, step=self._step, is_echo=self._is_echo(matched)
                )
            elif pattern.timed_out:
                self._found[index] = Landmark(pattern=pattern.text, timed_out=True)

    def _is_echo(self, matched: str) -> bool:
        # `.*` can match up to the sentinel at the end of a window.
        text = matched.rstrip(SENTINEL).strip()
        # A pattern such as `x?` can match an empty text, which is in every source.
        return bool(text) and text in (self._source or "")
