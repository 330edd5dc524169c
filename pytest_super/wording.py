"""Words for people: printable texts of others, and the known name that an unknown one was meant to be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# C0 and C1 except tab and newline, changes of direction, and characters that cannot be encoded.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Text of a task file, an agent, a sandbox or a model, as it can be shown on a terminal.

    It has no characters that move the cursor or cannot be encoded.
    """
    return CONTROL.sub("?", text)


def printable_line(text: str) -> str:
    """The same on one line, so that no part of it looks like another message."""
    return printable(text.replace("\n", " | "))


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """The end of a message about an unknown name: the `most` known names closest to it, or "" without one."""
    # Not at the top: only a message needs it.
    import difflib

    by_lower = {one.lower(): one for one in known}
    close = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, n=most)]
    return f"; did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else ""
