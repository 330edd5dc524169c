"""What the gates of a run have decided, stored in its folder when it has ended."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import UNREADABLE, disk_errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PASSED, FAILED, OPEN, CANNOT_TELL = "passed", "FAILED", "open", "cannot tell"
# One of several gates decides for all of them: the first of these that one of them has.
WORST_FIRST = (FAILED, OPEN, CANNOT_TELL, PASSED)
FILE = "verdict.json"


@dataclass(frozen=True)
class Verdict:
    """What one gate has decided: one of the words above, and why."""

    word: str
    why: str

    @property
    def line(self) -> str:
        return f"gate: {self.word}, {self.why}"


@dataclass(frozen=True, kw_only=True)
class Regression:
    """How one set of a run differs from its baseline: `verdict` is pass, regressed or cannot tell."""

    verdict: str
    points: float
    """The difference of the means of the headline metric, in points."""
    low: float
    high: float
    """Its interval of 90 %, in points."""


@dataclass(frozen=True, kw_only=True)
class RunVerdict:
    """The verdicts of all gates of a run; none in a run without gates."""

    invalid: str
    """Why the figures of the run are invalid; "" if they are valid."""
    gates: Sequence[Verdict]
    regression: dict[str, Regression] = field(default_factory=dict)
    """By set; empty without a baseline that could be compared."""

    @property
    def word(self) -> str:
        """`passed`, `failed`, `open` or `cannot tell`; "" without gates."""
        words = {gate.word for gate in self.gates}
        return next((word.lower() for word in WORST_FIRST if word in words), "")

    @property
    def facts(self) -> dict[str, object]:
        """The suite properties of JUnit XML, without the prefix."""
        compared = {
            f"regression.{name}{suffix}": value
            for name, one in self.regression.items()
            for suffix, value in (("", one.verdict), (".points", one.points))
        }
        return {"invalid": self.invalid, "verdict": self.word, **compared}


def write_verdict(run: Path, verdict: RunVerdict) -> None:
    """Nothing for a run without gates. Raises InfrastructureError."""
    if verdict.word:
        data = {**asdict(verdict), "verdict": verdict.word, "gates": [gate.line for gate in verdict.gates]}
        with disk_errors(run):
            write_atomically(run / FILE, json.dumps(data, indent=1) + "\n")


def read_word(run: Path) -> str:
    """The word for all gates of a stored run; "" if it has none that can be read."""
    try:
        return str(json.loads((run / FILE).read_text(encoding="utf-8"))["verdict"])
    except UNREADABLE:
        return ""
