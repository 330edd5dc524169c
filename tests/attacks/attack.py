"""An attack, and the three things that can come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Outcome = Literal["blocked", "flagged", "open"]
"""`blocked`: it gains nothing. `flagged`: it gains something, and the result says so. `open`: neither."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    name: str
    """What is tried, as a sentence."""
    run: Callable[[Path], Outcome]
    """Tries it with an empty folder of its own, by the public interface of the harness."""
    needs: tuple[str, ...] = ()
    """Programs without which it cannot be tried, such as `bwrap`."""
