"""The content between `<content>` and `</content>`, which can contain such tags itself.

Takes time linear in the length of the text: the patterns use possessive quantifiers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

OPENING, CLOSING = "<content>", "</content>"

MARKUP = r"[ \t>*_`#-]*+"
OPENING_LINE = re.compile(rf"^[ \t]*+{OPENING}", re.MULTILINE)
_CLOSING_LINE = re.compile(rf"{CLOSING}[ \t\r]*+(?:\Z|(Thought|Action|Observation)\b)")
# Case matters: files have keys such as `action:`.
_CONTINUATION = re.compile(rf"{MARKUP}(?:Thought|Action|Observation)[*_`]*+[ \t]*+:")
_PIECES = re.compile(r"<[^<>]*+>|[^<>\s]++|[<>]")
# With attributes, as in XML files.
_OPENING_TAG = re.compile(r"<content(?:\s[^<>]*+)?+>")
_ALONE = "In code, write a tag that stands alone in two parts."


class UnclearError(ValueError):
    """The content has no end, or no clear one. The text says why."""


class _Line(NamedTuple):
    start: int
    text: str
    open: int
    """How many tags are open after the line: 0 or less if it closes the content."""
    closing: re.Match[str] | None
    """A closing tag at the end of the line that closes a tag of an earlier line."""


def within_tags(text: str, start: int, limit: int) -> str:
    """The content from `start` up to the last closing tag at the end of a line that closes the content.

    A tag that closes another one in the content does not. After the first tag that does, a line that begins
    like a thought, an action or an observation ends the search: the model has made up the rest.

    Raises UnclearError if there is no such tag, or if it closes the content of the next action, whose label
    is at `limit`. Also if a tag in the content stays open, because a stop text can have cut the answer there,
    and if the rest closes a tag that it does not open, because the rest can be content then.
    """
    following = OPENING_LINE.search(text, limit)
    end, furthest = -1, following.end() if following else len(text)
    for line in _lines(text, start, open=1):
        if end >= 0 and _CONTINUATION.match(line.text):
            break
        if line.closing and line.open <= 0:
            place = line.start + line.closing.start()
            if end >= 0 and place >= furthest:
                break
            end = place
            if line.closing[1]:
                break
    else:
        if line.open > 0:
            raise UnclearError(_not_closed(text[start:]))
    if end >= furthest:
        raise UnclearError(_not_closed(text[start:]))
    _check_rest(text, end + len(CLOSING))
    return _without_tag_lines(text[start:end])


def _lines(text: str, start: int, open: int) -> Iterator[_Line]:
    """The lines from `start` on, where `open` tags are open."""
    for line in text[start:].split("\n"):
        closing = _CLOSING_LINE.search(line)
        change = _opened(line[: closing.start() + len(CLOSING)] if closing else line)
        open = max(0, open) + change
        yield _Line(start, line, open, closing if change < 0 else None)
        start += len(line) + 1


def _opened(line: str) -> int:
    """How many tags the line opens, less those that it closes.

    In a line with only opening or only closing tags, those in the middle of text do not count: code can name
    them.
    """
    pieces = _PIECES.findall(line)
    if CLOSING not in pieces or not any(map(_OPENING_TAG.fullmatch, pieces)):
        first = list(takewhile(_is_tag, pieces))
        pieces = [*first, *takewhile(_is_tag, reversed(pieces[len(first) :]))]
    return sum(bool(_OPENING_TAG.fullmatch(piece)) - (piece == CLOSING) for piece in pieces)


def _is_tag(piece: str) -> bool:
    return len(piece) > 1 and piece.startswith("<")


def _not_closed(text: str) -> str:
    reason = f"The content is not closed by {CLOSING}, so nothing was done."
    return f"{reason} Each {OPENING} in it needs a {CLOSING}. {_ALONE}" if CLOSING in text else reason


def _check_rest(text: str, start: int) -> None:
    """Raise UnclearError if the rest from `start` on closes a tag that it did not open."""
    if any(line.open < 0 for line in _lines(text, start, open=0) if line.closing):
        raise UnclearError(
            f"A second {CLOSING} follows, so it is not clear where the content ends, and nothing was done. "
            f"{_ALONE}"
        )


def _without_tag_lines(content: str) -> str:
    """Remove only the line ends after the opening and before the closing tag: blank lines can be intended."""
    content = re.sub(r"\A[ \t]*+(?:\r?\n)?", "", content)
    head, _, last = content.rpartition("\n")
    return content if last.strip(" \t\r") else head
