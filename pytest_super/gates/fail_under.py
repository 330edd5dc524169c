"""Gates: bounds for figures of the run, which decide its exit status."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.gates.figures import Figure, figure_of, mean_figure
from pytest_super.metrics.accuracy import ACCURACY
from pytest_super.statistics.errors import ROUNDING
from pytest_super.store.verdict import FAILED, OPEN, PASSED, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_super.gates.must_solve import MustSolve
    from pytest_super.metrics import Metric
    from pytest_super.store.results import TrialResult

INVALID = Verdict(FAILED, "the figures are invalid")
_NAMED = re.compile(r"(?P<name>[^:<]*)(?P<sign>[:<])(?P<bound>.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Passed if the figure is at least `bound`, or below it if lower values are better."""

    figure: Figure
    bound: float

    def is_passed(self, results: Sequence[TrialResult]) -> bool:
        """False if no trial has a value."""
        value = self.figure.of(results)
        if value is None:
            return False
        if self.figure.higher_is_better:
            return value >= self.bound - ROUNDING
        return value < self.bound - ROUNDING

    def verdict(self, results: Sequence[TrialResult]) -> Verdict:
        value = self.figure.of(results)
        if value is None:
            return Verdict(FAILED, f"no trial has a value of {self.figure.name}")
        is_passed = self.is_passed(results)
        if self.figure.higher_is_better:
            relation = "at least" if is_passed else "under"
        else:
            relation = "below" if is_passed else "not below"
        why = f"mean {self.figure.name} {value:.4f} is {relation} {self.bound:g}"
        return Verdict(PASSED if is_passed else FAILED, why)

    def open_verdict(self) -> Verdict:
        return Verdict(OPEN, f"the run has no mean {self.figure.name} of all trials")


def verdicts(
    results: Sequence[TrialResult], gates: Iterable[Gate | MustSolve], *, is_valid: bool, not_run: int
) -> Iterator[Verdict]:
    """Of each gate. It stays open if not all trials have ended; `is_valid` is that of the figures."""
    is_open = bool(not_run) or any(result.is_interrupted for result in results)
    for gate in gates:
        if is_open:
            yield gate.open_verdict()
        else:
            yield gate.verdict(results) if is_valid else INVALID


def parse_gate(text: str, metrics: Sequence[Metric], source: str = "--super-fail-under") -> Gate:
    """Parse `text`: NAME:BOUND, NAME<BOUND, or a number, which is a bound for the accuracy.

    A name is that of a metric, `category.NAME`, or one of USED.

    `source` names the option or ini value in errors. Raises SuperError.
    """
    given = f"{source}={text}"
    named = _NAMED.fullmatch(text)
    if named is None:
        bound = bound_of(given, text)
        if not 0 <= bound <= 1:
            raise SuperError(f"{given}: must be between 0 and 1")
        return Gate(figure=mean_figure(ACCURACY), bound=bound)
    figure = figure_of(named["name"], metrics, given)
    if figure.higher_is_better != (named["sign"] == ":"):
        better, sign = ("higher", ":") if figure.higher_is_better else ("lower", "<")
        raise SuperError(f"{given}: {better} is better: write '{figure.name}{sign}{named['bound']}'")
    return Gate(figure=figure, bound=bound_of(given, named["bound"]))


def bound_of(given: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise SuperError(f"{given}: {text!r} is not a number") from None
    if not isfinite(number):
        raise SuperError(f"{given}: {text!r} is not a number")
    return number
