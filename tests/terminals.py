"""A pseudo-terminal, and the screen that it would show."""

import fcntl
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.waiting import until

COLUMNS, ROWS = 80, 24
# Movements to the left margin, down, up and to the right; clearing; colours; text.
PART = re.compile(r"(\r)|(\n)|\x1b\[(\d*)([ACJKm])|\x1b\[[\d;]*m|([^\x1b\r\n]+)")


class Screen:
    """As much of a terminal as the live display uses; it is as high as what is printed."""

    def __init__(self, text: str = "") -> None:
        self.rows = [""]
        self.row = self.column = 0
        self.print(text)

    def print(self, text: str) -> None:
        parts = PART.findall(text)
        for left, down, number, letter, words in parts:
            if left:
                self.column = 0
            elif down:
                # The terminal driver makes CR LF of it.
                self.row, self.column = self.row + 1, 0
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif letter == "A":
                self.row = max(0, self.row - int(number or 1))
            elif letter == "C":
                self.column += int(number or 1)
            elif letter == "J":
                self.rows[self.row] = self.rows[self.row][: self.column]
                del self.rows[self.row + 1 :]
            elif words:
                line = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = line[: self.column] + words + line[self.column + len(words) :]
                self.column += len(words)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.rows).rstrip()


class Terminal:
    """What was written to a pseudo-terminal until now."""

    def __init__(self, master: int, slave: int) -> None:
        self.slave = slave
        self._master = master
        self._written = b""
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        # At the end of its last writer, Linux reports an error.
        with suppress(OSError):
            while data := os.read(self._master, 65536):
                self._written += data

    @property
    def written(self) -> str:
        return self._written.decode(errors="replace")

    def wait_for(self, expected: str | re.Pattern[str]) -> None:
        """Return once the text, or a match of the pattern, was written."""
        pattern = re.compile(re.escape(expected)) if isinstance(expected, str) else expected
        until(lambda: pattern.search(self.written))

    def release(self) -> None:
        """Close our end of what processes write to. Idempotent."""
        with suppress(OSError):
            os.close(self.slave)
        self.slave = -1

    def join(self) -> str:
        """Everything, once the last process that writes has ended."""
        self.release()
        self._thread.join(30)
        return self.written


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Its `slave` is the descriptor to write to."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    opened = Terminal(master, slave)
    try:
        yield opened
    finally:
        opened.join()
        os.close(master)
