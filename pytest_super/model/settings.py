"""Which model a run asks, and how."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SCRIPTED = "scripted:"


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Plain JSON values only: it crosses to the gateway's process. Keys are no part of it."""

    name: str
    """A name that litellm knows, or `scripted:FILE`."""
    parameters: dict[str, Any]
    """What the user set for every call; it wins over what an agent asks for."""
    max_cost: float | None
    """US dollars, of the whole run on this machine."""
    calls: str
    """File to which every call adds a line: what it used, and by which model it was served."""
    record: str | None
    """Folder for whole calls, a file a trial."""

    def to_data(self) -> dict[str, Any]:
        return asdict(self)
