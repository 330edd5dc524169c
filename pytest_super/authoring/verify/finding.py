"""What is wrong with a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["fails", "flaky", "leaks", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong; `unknown` is what could not be looked at."""

    kind: Kind
    task: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    """The same as plain JSON values, by kind."""
