"""Gates: bounds for the means of metrics, which decide the exit status of the run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError, did_you_mean
from pytest_super.metrics.accuracy import ACCURACY
from pytest_super.report.summary import ROUNDING, mean_with_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_super.metrics import Metric
    from pytest_super.store.results import TrialResult

_NAMED = re.compile(r"(?P<name>[^:<]*)(?P<sign>[:<])(?P<bound>.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Passed if the mean is at least `bound`, or below it if lower values of the metric are better."""

    metric: Metric
    bound: float

    def is_passed(self, results: Iterable[TrialResult]) -> bool:
        """False if no trial has a value of the metric."""
        mean = mean_with_errors(results, self.metric)
        if mean is None:
            return False
        if self.metric.higher_is_better:
            return mean >= self.bound - ROUNDING
        return mean < self.bound - ROUNDING


def parse_gate(text: str, metrics: Sequence[Metric], source: str = "--super-fail-under") -> Gate:
    """Parse `text`: NAME:BOUND, NAME<BOUND, or a number, which is a bound for the accuracy.

    `source` names the option or ini value in errors. Raises SuperError.
    """
    given = f"{source}={text}"
    named = _NAMED.fullmatch(text)
    if named is None:
        bound = bound_of(given, text)
        if not 0 <= bound <= 1:
            raise SuperError(f"{given}: must be between 0 and 1")
        return Gate(metric=ACCURACY, bound=bound)
    by_name = {metric.name: metric for metric in metrics}
    metric = by_name.get(named["name"])
    if metric is None:
        meant = did_you_mean(named["name"], by_name)
        raise SuperError(f"{given}: there is no such metric: choose from {', '.join(by_name)}{meant}")
    if metric.higher_is_better != (named["sign"] == ":"):
        better, sign = ("higher", ":") if metric.higher_is_better else ("lower", "<")
        raise SuperError(f"{given}: {better} is better: write '{metric.name}{sign}{named['bound']}'")
    return Gate(metric=metric, bound=bound_of(given, named["bound"]))


def bound_of(given: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise SuperError(f"{given}: {text!r} is not a number") from None
    if not isfinite(number):
        raise SuperError(f"{given}: {text!r} is not a number")
    return number


def gate_line(gate: Gate, results: Sequence[TrialResult], *, is_valid: bool) -> str:
    """`is_valid` is false if too many trials are errors."""
    if not is_valid:
        return "gate: FAILED, the figures are invalid"
    name, bound = gate.metric.name, f"{gate.bound:g}"
    mean = mean_with_errors(results, gate.metric)
    if mean is None:
        return f"gate: FAILED, no trial has a value of {name}"
    is_passed = gate.is_passed(results)
    if gate.metric.higher_is_better:
        relation = "at least" if is_passed else "under"
    else:
        relation = "below" if is_passed else "not below"
    return f"gate: {'passed' if is_passed else 'FAILED'}, mean {name} {mean:.4f} is {relation} {bound}"
