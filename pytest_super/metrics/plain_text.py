"""Terminal output as one line of plain text, the same whatever the pieces in which it came."""

from __future__ import annotations

import re

# A string sequence (title, hyperlink, picture) that goes on longer than this is taken for text: an
# unfinished one must not hide all that follows.
STRING_LIMIT = 4096

_ESCAPE = re.compile(
    rf"""\x1b(?:
        \[[0-?]{{0,64}}+[ -/]{{0,8}}+[@-~]                            # control sequence: colours, cursor
      | [\]PX^_][^\x07\x1b]{{0,{STRING_LIMIT}}}+(?:\x07|\x1b\\)       # string
      | [ -/]{{1,8}}+[0-~] | [0-OQ-WYZ\\`-~]                          # character set, single function
      | (?P<unfinished> \[[0-?]{{0,64}}+[ -/]{{0,8}}+\Z
                      | [\]PX^_][^\x07\x1b]{{0,{STRING_LIMIT}}}+\x1b?\Z
                      | [ -/]{{0,8}}+\Z )
      | )                                                             # malformed: the escape character alone
    """,
    re.VERBOSE,
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
        self._unfinished = ""
        return _ESCAPE.sub(self._hold_unfinished, text)

    def _hold_unfinished(self, match: re.Match[str]) -> str:
        if match["unfinished"] is not None:
            self._unfinished = match[0]
        return ""


def plain(text: str) -> str:
    """The whole of `text` as plain text."""
    return PlainText().feed(text)


def without_escapes(text: str) -> str:
    """The whole of `text` with its escape sequences deleted and its lines kept."""
    return _ESCAPE.sub("", text)
