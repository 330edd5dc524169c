"""Which model a run asks, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCRIPTED = "scripted:"


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """What the gateway's process gets from its clients. Plain JSON values; never keys."""

    name: str
    """A name that litellm knows, or `scripted:FILE`."""
    parameters: dict[str, Any]
    """What the user set for every call; it wins over an agent's parameters."""
    max_cost: float | None
    """US dollars, for the whole run."""
    calls: str
    """The file that gets a line for every call: its usage, and the model that served it."""
    record: str | None
    """The folder for whole calls, with one file a trial."""
    machines: int = 1
    """The run's machines. Each has a gateway, which gets an equal part of the run's limits."""
