"""The verdict of a run: what each gate has decided, and whether the run fails. All reports read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pytest_super.gates.wording import GATE, INVALID, WORST_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.comparison.comparison import Comparison, SetComparison
    from pytest_super.store.results import TrialResult


@dataclass(frozen=True)
class GateVerdict:
    """What one gate has decided: one of the words of `wording`, and why."""

    word: str
    why: str

    @property
    def line(self) -> str:
        return f"{GATE}{self.word}, {self.why}"


class Gate(Protocol):
    """A gate on plain figures."""

    @property
    def why_open(self) -> str:
        """What it lacks as long as not all trials have ended."""

    def verdict(self, results: Sequence[TrialResult]) -> GateVerdict: ...


@dataclass(frozen=True, kw_only=True)
class RunVerdict:
    """Made by RunGates when a run has ended."""

    invalid: str
    """Why the figures of the run are invalid; "" if they are valid."""
    gates: Sequence[GateVerdict]
    comparison: Comparison | None = None
    """With the baseline; None without one, or if nothing was compared."""
    why_not_compared: str = ""
    """Why nothing can be compared with the baseline; "" if it was, or if trials are missing."""
    allows_errors: bool = False
    """Whether errors do not fail the run."""
    fails: bool = False
    """Whether the run fails, even if no test has failed."""

    @property
    def word(self) -> str:
        """`passed`, `failed`, `open` or `cannot tell`; "" without gates."""
        words = {gate.word for gate in self.gates}
        return next((word.lower() for word in WORST_FIRST if word in words), "")

    @property
    def lines(self) -> Iterator[str]:
        """Whether the figures are valid, and each gate."""
        if self.invalid:
            yield f"{INVALID}{self.invalid}"
        yield from (gate.line for gate in self.gates)

    @property
    def regression(self) -> dict[str, dict[str, Any]]:
        """By set, how the run differs from its baseline; empty if nothing was compared."""
        return {one.set: regression_of(one) for one in self.comparison.sets} if self.comparison else {}

    @property
    def facts(self) -> dict[str, object]:
        """The suite properties of JUnit XML, without the prefix."""
        compared = {
            f"regression.{name}{suffix}": one[key]
            for name, one in self.regression.items()
            for suffix, key in (("", "verdict"), (".points", "points"))
        }
        return {"invalid": self.invalid, "verdict": self.word, **compared}

    def to_data(self) -> dict[str, Any]:
        """The content of verdict.json."""
        return {
            "invalid": self.invalid,
            "gates": [gate.line for gate in self.gates],
            "regression": self.regression,
            "verdict": self.word,
        }


def regression_of(one: SetComparison) -> dict[str, Any]:
    """The verdict on a set, and the difference of the headline's means with its interval, in points."""
    low, high = (round(100 * bound, 2) for bound in one.difference.bounds(one.level))
    points = round(100 * one.difference.value, 2)
    return {"verdict": one.verdict, "points": points, "low": low, "high": high}
