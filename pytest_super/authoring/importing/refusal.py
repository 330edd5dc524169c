"""How a row is refused, and how changes to it are reported."""

from __future__ import annotations

from collections.abc import Callable

Warn = Callable[[str], None]


class NoTaskError(Exception):
    """The row yields no task; the text says why."""
