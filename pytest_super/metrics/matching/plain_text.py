"""Terminal output as one line of plain text, the same whatever the pieces in which it came."""

from __future__ import annotations

import re

# A string sequence (title, hyperlink, picture) that goes on longer than this is taken for text: an
# unfinished one must not hide all that follows.
STRING_LIMIT = 4096

_ESCAPE = re.compile(
    rf"""\x1b(?:
        \[[0-?]{{0,64}}+[ -/]{{0,8}}+(?:[@-~]|\Z)  # control sequence: colours, cursor
      | [\]PX^_][^\x07\x1b]{{0,{STRING_LIMIT}}}+(?:\x07|\x1b\\|\x1b?\Z)  # string
      | [ -/]{{1,8}}+[0-~] | [0-OQ-WYZ\\`-~]  # character set, single function
      | [ -/]{{0,8}}+\Z
      | )  # malformed: the escape character alone
    """,
    re.VERBOSE,
)
_UNFINISHED = re.compile(
    rf"\x1b(?:\[[0-?]{{0,64}}+[ -/]{{0,8}}+|[\]PX^_][^\x07\x1b]{{0,{STRING_LIMIT}}}+\x1b?|[ -/]{{0,8}}+)\Z"
)


class PlainText:
    """Escape sequences deleted, then CRLF, LF and CR each one blank. Feed it pieces, then `end`."""

    def __init__(self) -> None:
        self._unfinished = ""
        self._after_return = False

    def feed(self, piece: str) -> str:
        if self._unfinished or "\x1b" in piece:
            piece = self._without_escapes(self._unfinished + piece)
        if self._after_return and piece:
            piece = piece.removeprefix("\n")
            self._after_return = False
        if "\r" in piece:
            self._after_return = piece.endswith("\r")
            piece = piece.replace("\r\n", " ").replace("\r", " ")
        return piece.replace("\n", " ")

    def end(self) -> None:
        """The text is over: an unfinished sequence is dropped, the next piece begins another text."""
        self._unfinished = ""
        self._after_return = False

    def _without_escapes(self, text: str) -> str:
        # The end of a string sequence may be cut in two: its escape character is then the last but one.
        last = text.rfind("\x1b")
        begun = _UNFINISHED.search(text, max(0, text.rfind("\x1b", 0, last)))
        self._unfinished = begun[0] if begun else ""
        return _ESCAPE.sub("", text)


def plain(text: str) -> str:
    """The whole of `text` as plain text."""
    return PlainText().feed(text)


def without_escapes(text: str) -> str:
    """The whole of `text` with its escape sequences deleted and its lines kept."""
    return _ESCAPE.sub("", text)
