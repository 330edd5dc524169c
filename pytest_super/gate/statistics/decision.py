"""Better, worse, or cannot tell: what the bounds of differences say about a margin.

Several looks and several sets share one error.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, sqrt
from typing import Final, Literal, TypeAlias

from scipy.special import stdtr

from pytest_super.gate.statistics.difference import Difference
from pytest_super.gate.statistics.variance import LEVEL

Verdict: TypeAlias = Literal["pass", "regressed", "cannot tell"]
PASS: Final = "pass"
REGRESSED: Final = "regressed"
CANNOT_TELL: Final = "cannot tell"

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


def verdicts(
    found: Mapping[str, Difference], margin: float, confidence: Confidence, sides: int = 1
) -> dict[str, Verdict]:
    """Map sets to their verdicts. So many `sides` share the error of a false alarm (Bonferroni)."""
    levels = holm_levels(found, lambda name, sets: confidence(name, sets * sides))
    return {
        name: verdict(one, margin, pass_level=confidence(name, 1), level=levels[name])
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


def verdict(found: Difference, margin: float, *, pass_level: float = LEVEL, level: float = LEVEL) -> Verdict:
    """`pass` if a drop of `margin` or more can be excluded, else `regressed` if there is a drop for sure.

    `pass_level` and `level` are the confidences at which the one and the other is sure.
    """
    if not found.is_small and found.bounds(pass_level)[0] > -margin:
        return PASS
    return REGRESSED if is_worse(found, level) else CANNOT_TELL


def is_worse(found: Difference, level: float) -> bool:
    """Whether there is a drop, at this confidence."""
    if found.is_small:
        return found.exact <= 1 - level
    return bool(found.bounds(level)[1] < 0)


def chance_of_no_drop(found: Difference) -> float:
    """The p-value of the difference, one-sided: how likely one as low is if nothing became worse."""
    by_bounds = float(stdtr(found.variance.freedom, found.value / sqrt(found.variance.value)))
    return found.exact if found.is_small else min(by_bounds, found.exact)
