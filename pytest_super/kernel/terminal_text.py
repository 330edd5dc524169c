"""Text as a terminal shows it after everything is printed: bars overwrite themselves, colours are dropped.

No library does this: pyte has a screen of fixed size, breaks lines at its width and takes microseconds for
every character. `kernel.escapes` says why landmarks are not matched against this text.
"""

from __future__ import annotations

import re
from unicodedata import east_asian_width

from pytest_super.kernel.escapes import CONTROL, CONTROL_END, SINGLE, STRING, STRING_END

# How far the cursor can move beyond the printed text. Programs find no terminal or one of 24 lines, and a
# program that moves to column 999 means the edge. With these bounds, time and memory are linear in the text.
WIDTH = 200
HEIGHT = 24
TAB = 8

# A row that is overwritten in part becomes cells of four bytes each, so that the cost of a write does not
# depend on the length of the row.
_CELL = 4
_ENCODING = "utf-32-le"
_BLANK = " ".encode(_ENCODING)
# Fills the further cells of a wide character or tab. Printed text never leaves one.
_FILLER = "\0"
_FILLER_CELL = _FILLER.encode(_ENCODING)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# What moves or erases, after an escape character. Insertions and deletions within rows are ignored, because
# the cost of each grows with the length of its row.
_EFFECTIVE = r"\[[0-9;]*+[A-HJKXade-fsu`] | [78EMc] | \[\?(?:47|1047|1049)[hl]"

# Control characters and sequences without effect on the text, and the escape character of a malformed
# sequence. It begins with a set of characters, which makes the search fast. A string has no limit here: a
# picture can be long. It ends with its line, so that an unfinished one hides no other line.
_IDLE = re.compile(
    rf"""[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]
    (?: (?<!\x1b) | \[[0-9;]*+m                                   # colours, by far the most
      | (?!{_EFFECTIVE})
        (?: {CONTROL}(?:{CONTROL_END}|\Z)
          | {STRING}[^\x07\x1b\n]*+(?:{STRING_END}|\x1b?\Z)
          | {SINGLE} | [ -/]*+\Z
          | ) )
    """,
    re.VERBOSE,
)
# Characters that can be two cells wide: most texts have none and need no closer look.
_MAYBE_WIDE = re.compile("[\u1100-\u115f\u231a-\u23f3\u25fd-\U0003fffd]")
_TOKEN = re.compile(
    r"""(?P<text>[^\r\x08\t\x1b]+) | (?P<tab>\t) | (?P<back>\x08+) | (?P<home>\r+)
    | \x1b(?:\[(?P<numbers>[0-9;]*)(?P<final>[A-Za-z`]) | (?P<single>[78EM]) | (?P<page>c|\[\?\d+[hl]))
    """,
    re.VERBOSE,
)


def is_plain(text: str) -> bool:
    """Whether a terminal shows `text` unchanged: no control characters but newlines (CRLF too) and tabs."""
    return _CONTROL.search(text.replace("\r\n", "\n")) is None


def as_shown(text: str) -> str:
    """What a terminal of endless width shows when `text` is printed; a newline also returns to column 0.

    Escape sequences are removed, and cursor movements, erasures and backspaces are carried out; the only
    control characters left are newlines and tabs. A screen that is cleared stays, above the next one. Plain
    text is returned unchanged. Time and memory are linear in `text`, whatever it contains.
    """
    text = text.replace("\r\n", "\n")
    if _CONTROL.search(text) is None:
        return text
    text = _IDLE.sub("", text)
    # Most texts only had colours, and need no screen.
    if _CONTROL.search(text) is None:
        return text
    screen = _Screen()
    for number, line in enumerate(text.split("\n")):
        if number:
            screen.feed_line()
        # A newline returns to column 0 anyway, and without other movements `show` takes its short way.
        screen.show(line.rstrip("\r"))
    return screen.text()


class _Screen:
    """Rows that grow downwards. A row is a text with one character a cell, or cells once overwritten."""

    def __init__(self) -> None:
        self._rows: list[str | bytearray] = [""]
        self._row = self._column = 0
        self._saved = (0, 0)
        # The topmost row that the cursor can reach.
        self._page = 0

    def text(self) -> str:
        while len(self._rows) - 1 > self._row and not self._rows[-1]:
            self._rows.pop()
        rows = (row if isinstance(row, str) else row.decode(_ENCODING, "surrogatepass") for row in self._rows)
        return "\n".join(rows).replace(_FILLER, "")

    def feed_line(self) -> None:
        self._row, self._column = self._row + 1, 0
        self._reach_row()

    def show(self, line: str) -> None:
        """Print the text between two newlines. The cursor is at the beginning of a row."""
        is_plain = "\x1b" not in line and "\r" not in line and "\b" not in line
        if is_plain and not self._rows[self._row]:
            self._rows[self._row] = spread(line)
            return
        for token in _TOKEN.finditer(line):
            self._obey(token)

    def _obey(self, token: re.Match[str]) -> None:
        match token.lastgroup:
            case "text":
                self._write(spread(token[0]))
            case "tab":
                self._tabulate()
            case "back":
                self._column = max(0, self._column - len(token[0]))
            case "home":
                self._column = 0
            case "final":
                self._control(token["final"], token["numbers"])
            case "single":
                self._escape(token[0][-1])
            case _:
                self._turn_page()

    def _control(self, final: str, numbers: str) -> None:
        first, _, second = numbers.partition(";")
        number, count = number_in(first), max(1, number_in(first))
        match final:
            case "A" | "F":
                self._go_to(self._row - count, 0 if final == "F" else self._column)
            case "B" | "E" | "e":
                self._go_to(self._row + count, 0 if final == "E" else self._column)
            case "C" | "a":
                self._go_right_to(self._column + count)
            case "D":
                self._column = max(0, self._column - count)
            case "G" | "`":
                self._go_right_to(count - 1)
            case "H" | "f":
                self._go_to(self._top + count - 1, 0)
                self._go_right_to(max(1, number_in(second)) - 1)
            case "d":
                self._go_to(self._top + count - 1, self._column)
            case "K":
                self._erase_in_row(number)
            case "J":
                self._erase_rows(number)
            case "X":
                self._blank(self._column, self._column + min(count, WIDTH))
            case "s" | "u":
                self._escape("7" if final == "s" else "8")

    def _escape(self, letter: str) -> None:
        match letter:
            case "7":
                self._saved = (self._row, self._column)
            case "8":
                self._go_to(*self._saved)
            case "E":
                self.feed_line()
            case "M":
                self._go_to(self._row - 1, self._column)

    @property
    def _top(self) -> int:
        """The row that absolute positions count from."""
        return max(self._page, len(self._rows) - HEIGHT)

    def _go_to(self, row: int, column: int) -> None:
        bottom = max(len(self._rows), self._top + HEIGHT) - 1
        self._row, self._column = min(max(row, self._page), bottom), column

    def _go_right_to(self, column: int) -> None:
        self._column = min(column, max(self._length, WIDTH - 1))

    def _reach_row(self) -> None:
        missing = self._row + 1 - len(self._rows)
        if missing > 0:
            self._rows += [""] * missing

    @property
    def _length(self) -> int:
        """The length of the cursor's row in cells."""
        self._reach_row()
        row = self._rows[self._row]
        return len(row) if isinstance(row, str) else len(row) // _CELL

    def _cells(self) -> bytearray:
        """The cells of the cursor's row."""
        self._reach_row()
        row = self._rows[self._row]
        if isinstance(row, str):
            row = self._rows[self._row] = bytearray(encoded(row))
        return row

    def _write(self, text: str) -> None:
        length = self._length
        if not self._column and length <= len(text):
            self._rows[self._row], self._column = text, len(text)
        else:
            self._write_into(self._cells(), length, text)

    def _write_into(self, row: bytearray, length: int, text: str) -> None:
        start = min(self._column, max(length, WIDTH))
        end = self._column = start + len(text)
        row += _BLANK * (start - length)
        blank_glyph(row, start)
        blank_glyph(row, end)
        row[start * _CELL : end * _CELL] = encoded(text)

    def _tabulate(self) -> None:
        """Write a tab beyond the text; within the text only move."""
        width = TAB - self._column % TAB
        if self._column >= self._length:
            self._write("\t" + _FILLER * (width - 1))
        else:
            self._column += width

    def _erase_in_row(self, how: int) -> None:
        if how == 1:
            self._blank(max(0, self._column + 1 - WIDTH), self._column + 1)
        elif how == 2 or (how == 0 and not self._column):
            self._reach_row()
            self._rows[self._row] = ""
        elif how == 0 and self._column < self._length:
            row = self._cells()
            blank_glyph(row, self._column)
            del row[self._column * _CELL :]

    def _blank(self, start: int, end: int) -> None:
        end = min(end, self._length)
        if start < end:
            row = self._cells()
            blank_glyph(row, start)
            blank_glyph(row, end)
            row[start * _CELL : end * _CELL] = _BLANK * (end - start)

    def _erase_rows(self, how: int) -> None:
        if how == 0:
            self._erase_in_row(0)
            del self._rows[self._row + 1 :]
        elif how == 2:
            self._turn_page()

    def _turn_page(self) -> None:
        """Begin an empty screen below all rows."""
        if self._rows[-1]:
            self._rows.append("")
        self._page = self._row = len(self._rows) - 1
        self._column = 0


def number_in(digits: str) -> int:
    # No screen has a million columns, and Python refuses to parse numbers with thousands of digits.
    return int(digits[:6] or 0)


def encoded(text: str) -> bytes:
    return text.encode(_ENCODING, "surrogatepass")


def spread(text: str) -> str:
    """`text` with one character for each cell that it fills. A text with tabs must begin in column 0."""
    if not text.isascii() and _MAYBE_WIDE.search(text):
        wide = {ord(char): char + _FILLER for char in set(text) if east_asian_width(char) in "WF"}
        text = text.translate(wide)
    if "\t" not in text:
        return text
    *parts, last = text.split("\t")
    return "".join(f"{part}\t{_FILLER * (TAB - 1 - len(part) % TAB)}" for part in parts) + last


def blank_glyph(row: bytearray, column: int) -> None:
    """Replace the wide character or tab that begins before `column` and reaches into it with blanks."""
    start = end = column
    while row[start * _CELL : (start + 1) * _CELL] == _FILLER_CELL:
        start -= 1
    while row[end * _CELL : (end + 1) * _CELL] == _FILLER_CELL:
        end += 1
    row[start * _CELL : end * _CELL] = _BLANK * (end - start)
