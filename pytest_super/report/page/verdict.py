"""What the gates of a run have decided, as its page shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pytest_super.gate.wording import GATE


@dataclass(frozen=True, kw_only=True)
class ShownVerdict:
    """The content of verdict.json."""

    word: str
    lines: list[str]
    """Of each gate."""
    sets: list[list[str]]
    """Of each set next to the baseline: its name, its verdict, the points, their interval."""


def verdict_in(content: bytes) -> ShownVerdict:
    """Raises one of UNREADABLE."""
    data = json.loads(content)
    return ShownVerdict(
        word=str(data["verdict"]),
        lines=[line.removeprefix(GATE) for line in data["gates"]],
        sets=[set_row(name, one) for name, one in data["regression"].items()],
    )


def set_row(name: str, one: dict[str, Any]) -> list[str]:
    points, low, high = (f"{one[key]:+.1f}" for key in ("points", "low", "high"))
    return [name, str(one["verdict"]), points, f"{low} to {high}"]
