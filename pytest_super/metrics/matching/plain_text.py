"""Terminal output as one line of plain text, however it is cut into pieces.

Nothing is rendered: text that a terminal would overwrite stays. `kernel.terminal_text` gives the reason.
"""

import re

from pytest_super.kernel.terminal_text import CONTROL, CONTROL_END, SINGLE, STRING, STRING_END

# A longer string sequence counts as text: an unfinished one must not hide everything that follows.
STRING_LIMIT = 4096

_STRING = rf"{STRING}[^\x07\x1b]{{0,{STRING_LIMIT}}}+"
_ESCAPE = re.compile(
    rf"""\x1b(?:
        {CONTROL}(?:{CONTROL_END}|\Z)
      | {_STRING}(?:{STRING_END}|\x1b?\Z)
      | {SINGLE}
      | [ -/]{{0,8}}+\Z
      | )  # malformed: the escape character alone
    """,
    re.VERBOSE,
)
# CRLF that a shell command prints arrives as CR CR LF, because the terminal of the cell replaces LF by CRLF.
_RETURNS = re.compile(r"\r++\n?")
_UNFINISHED = re.compile(rf"\x1b(?:{CONTROL}|{_STRING}\x1b?|[ -/]{{0,8}}+)\Z")


class PlainText:
    """Deletes escape sequences; each line end becomes one blank. Feed pieces, then `end` the text.

    A line end is LF, or carriage returns with or without an LF after them.
    """

    def __init__(self) -> None:
        self._unfinished = ""
        self._after_return = False

    def feed(self, piece: str) -> str:
        if self._unfinished or "\x1b" in piece:
            piece = self._unfinished + piece
            # If it ends within the end of a string sequence, that sequence began at the last escape but one.
            last = piece.rfind("\x1b")
            begun = _UNFINISHED.search(piece, max(0, piece.rfind("\x1b", 0, last)))
            self._unfinished = begun[0] if begun else ""
            piece = without_escapes(piece)
        # A line end that is divided between pieces is still one blank.
        if self._after_return and piece:
            self._after_return = not piece.strip("\r")
            piece = piece.lstrip("\r").removeprefix("\n")
        if "\r" in piece:
            self._after_return = piece.endswith("\r")
            piece = _RETURNS.sub(" ", piece)
        return piece.replace("\n", " ")

    def end(self) -> None:
        """End the text: drop an unfinished sequence. The next piece begins another text."""
        self._unfinished = ""
        self._after_return = False


def plain(text: str) -> str:
    """The whole of `text` as plain text."""
    return PlainText().feed(text)


def without_escapes(text: str) -> str:
    """The whole of `text` with its escape sequences deleted and its lines kept."""
    return _ESCAPE.sub("", text)
