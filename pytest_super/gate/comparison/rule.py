"""How sets are decided: how sure each of their bounds is, if several looks and sets share one error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from pytest_super.gate.statistics.bounds import LEVEL, Difference
from pytest_super.gate.statistics.decision import (
    CANNOT_TELL,
    PASS,
    REGRESSED,
    Verdict,
    chance_of_no_drop,
    is_worse,
    verdict,
)
from pytest_super.gate.statistics.difference import difference
from pytest_super.gate.statistics.samples import Pair

Confidence: TypeAlias = "Callable[[str, int], float]"
"""How sure each one-sided bound of a set must be, if so many sets share the error."""


def by_look(number: int) -> Confidence:
    """The confidence of a look at the same subject with all trials until then; `number` begins at 1.

    An unchanged agent that is looked at until it has regressed, and a worse one that is looked at until it
    passes, are decided wrongly as rarely as by one look: `benchmarks/pull_requests.py` simulates both.
    """
    return lambda _set, sets: 1 - risk_of(number) / sets


def risk_of(look: int) -> float:
    """How likely a look is wrong at most, for each of its bounds."""
    return (1 - LEVEL) / look**2


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How sets are decided."""

    margin: float
    confidence: Confidence
    sides: int = 1
    """How many comparisons of the run share the error of a false alarm, by Bonferroni."""

    def differences(self, pairs: Mapping[str, Sequence[Pair]]) -> dict[str, Difference]:
        """Map each set to the difference of its tasks."""
        return {name: difference(of_set) for name, of_set in pairs.items()}

    def verdicts(self, found: Mapping[str, Difference]) -> dict[str, Verdict]:
        levels = holm_levels(found, lambda name, sets: self.confidence(name, sets * self.sides))
        return {
            name: verdict(one, self.margin, pass_level=self.confidence(name, 1), level=levels[name])
            for name, one in found.items()
        }


def holm_levels(found: Mapping[str, Difference], confidence: Confidence) -> dict[str, float]:
    """The confidence at which each set has regressed: several sets give no more false alarms than one.

    Holm 1979, Scandinavian Journal of Statistics 6, 65-70: after one that is not worse at its level, none is.
    """
    levels: dict[str, float] = {}
    ends = False
    for place, name in enumerate(sorted(found, key=lambda name: share_of_error(name, found, confidence))):
        level = confidence(name, len(found) - place)
        ends = ends or not is_worse(found[name], level)
        levels[name] = 1.0 if ends else level
    return levels


def share_of_error(name: str, found: Mapping[str, Difference], confidence: Confidence) -> float:
    """The p-value of a set in the units of the error that it may have, which differs where looks do."""
    error = 1 - confidence(name, len(found))
    return chance_of_no_drop(found[name]) / error if error else inf


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    if REGRESSED in verdicts:
        return REGRESSED
    return PASS if all(one == PASS for one in verdicts) else CANNOT_TELL
