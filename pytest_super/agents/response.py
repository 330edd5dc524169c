"""What SUPER's agents read from a model's answer: a thought and one action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.store.trajectory import Action

# Finish reasons of answers that the provider cut: their action can be incomplete.
CUT = ("length", "content_filter")
CUT_OFF = "The answer was cut off at its end, so nothing was done: write a shorter one."


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """A parsed answer of the model."""

    thought: str
    action: Action
