"""One problem of a task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "fails", "weak", "flaky", "leaks", "unknown", "gold_fails", "not_executed", "insensitive", "open"
]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One problem that was found. `unknown`: something could not be checked."""

    kind: Kind
    task: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    """The same as plain JSON values; the keys depend on the kind."""


def finding(kind: Kind, task: str, text: str, facts: Mapping[str, Any] | None = None) -> Finding:
    """A finding whose text begins with the id of its task."""
    return Finding(kind=kind, task=task, text=f"{task}: {text}", facts=dict(facts or {}))
