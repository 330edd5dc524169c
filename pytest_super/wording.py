"""Words for people: the known name that an unknown one was probably meant to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """The end of a message about an unknown name: the `most` known names closest to it, or "" without one."""
    # Not at the top: only a message needs it.
    import difflib

    by_lower = {one.lower(): one for one in known}
    close = [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, n=most)]
    return f"; did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else ""
