"""Text as a terminal shows it after everything is printed: bars overwrite themselves, colours are dropped.

Only what progress bars use is carried out: carriage returns, backspaces, relative movements of the cursor and
erasures after it. Landmarks are not matched against this text, but by `metrics.matching.plain_text` against
everything that was printed: a loss that the next one overwrote was printed too. It shares only the grammar.
No library does this: pyte has a screen of fixed size, breaks lines at its width and takes microseconds for
every character.
"""

import re

# The grammar of escape sequences, as parts of regular expressions for what follows `\x1b`.

# A control sequence (colours, cursor) without its last character. The bounds are far above what programs
# print, so that a stream never has to wait for long.
CONTROL = r"\[[0-?]{0,64}+[ -/]{0,8}+"
CONTROL_END = "[@-~]"

# A string sequence (title, hyperlink, picture): its first character, and its end. The content is any text
# without these two characters.
STRING = r"[\]PX^_]"
STRING_END = r"(?:\x07|\x1b\\)"

# A choice of character set, or a function of one character.
SINGLE = r"[ -/]{1,8}+[0-~]|[0-OQ-WYZ\\`-~]"

# How far right of the printed text the cursor can move. A program that moves to column 999 means the edge.
# With this bound, time and memory are linear in the text.
WIDTH = 200

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# The control sequences that are carried out, after their escape character.
_EFFECTIVE = r"\[([0-9;]*+)([A-GJK])"

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
# The relative movements among them: how many rows down, and how many columns to the right.
_MOVES = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1), "E": (1, 0), "F": (-1, 0)}
_TOKEN = re.compile(rf"[^\n\r\x08\x1b]+|\n|\r+|\x08+|\x1b{_EFFECTIVE}")


def is_plain(text: str) -> bool:
    """Whether a terminal shows `text` unchanged: no control characters but newlines (CRLF too) and tabs."""
    return _CONTROL.search(text.replace("\r\n", "\n")) is None


def shown_lines(text: str) -> list[str]:
    """The lines that a terminal shows, without blanks around them; empty ones are left out."""
    return [line.strip() for line in as_shown(text).splitlines() if line.strip()]


def as_shown(text: str) -> str:
    """What a terminal of endless width shows when `text` is printed; a newline also returns to column 0.

    The only control characters left are newlines and tabs. Each character fills one column, also a tab or a
    wide one. Screens that a program clears or draws anew are shown one after the other. Plain text is
    returned unchanged. Time and memory are linear in `text`, whatever it contains.
    """
    text = text.replace("\r\n", "\n")
    if _CONTROL.search(text) is None:
        return text
    text = _IDLE.sub("", text)
    # Most texts only had colours, and need no screen.
    if _CONTROL.search(text) is None:
        return text
    screen = _Screen()
    for token in _TOKEN.finditer(text):
        screen.show(token)
    return screen.text()


class _Screen:
    """Rows of characters, and a cursor in one of the rows.

    Rows are lists, so that the cost of overwriting a part does not depend on the length of the row.
    """

    def __init__(self) -> None:
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0

    def text(self) -> str:
        rows = ["".join(row) for row in self._rows]
        while len(rows) - 1 > self._row and not rows[-1]:
            rows.pop()
        return "\n".join(rows)

    def show(self, token: re.Match[str]) -> None:
        match token[0][0]:
            case "\n":
                self._row, self._column = self._row + 1, 0
                if self._row == len(self._rows):
                    self._rows.append([])
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(0, self._column - len(token[0]))
            case "\x1b":
                # No screen has a million columns, and Python refuses to parse numbers of thousands of digits.
                number = token[1].partition(";")[0][:6]
                self._control(token[2], int(number or 0))
            case _:
                self._write(token[0])

    def _write(self, text: str) -> None:
        row, end = self._rows[self._row], self._column + len(text)
        row += " " * (self._column - len(row))
        row[self._column : end] = text
        self._column = end

    def _control(self, final: str, number: int) -> None:
        count, (down, right) = max(1, number), _MOVES.get(final, (0, 0))
        row, column = self._row + down * count, self._column + right * count
        match final:
            case "E" | "F":
                column = 0
            case "G":
                column = count - 1
            case "K" if number in (0, 2):
                del self._rows[row][0 if number else column :]
            case "J" if not number:
                del self._rows[row][column:], self._rows[row + 1 :]
        # Down only to rows that were printed, as at the bottom of a screen.
        self._row = min(max(row, 0), len(self._rows) - 1)
        self._column = min(max(column, 0), max(len(self._rows[self._row]), WIDTH - 1))
