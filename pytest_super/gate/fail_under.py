"""The gate `--super-fail-under`: a bound for a figure of the run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_super.errors import SuperError
from pytest_super.gate import CANNOT_TELL, FAILED, PASSED
from pytest_super.gate.errors import ROUNDING
from pytest_super.gate.figures import Figure, can_have, figure_of, mean_figure
from pytest_super.metrics import Metric
from pytest_super.metrics.accuracy import ACCURACY
from pytest_super.option_types import number
from pytest_super.store.results import TrialResult

_NAMED = re.compile(r"(?P<name>[^:<]*)(?P<sign>[:<])(?P<bound>.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class FailUnder:
    """Passed if the figure is at least `bound`, or below it if lower values are better."""

    figure: Figure
    bound: float
    must_apply: bool = True
    """False for a gate of the ini file, which is also there when only tasks without the figure run."""

    def needs(self, id: str) -> bool:  # noqa: ARG002
        """A figure is one of all tasks."""
        return True

    def decide(self, results: Sequence[TrialResult]) -> tuple[str, str]:
        """FAILED if no trial has a value; CANNOT_TELL if none can have one and it need not apply."""
        figure, limit = self.figure, self.bound - ROUNDING
        value = figure.of(results)
        if value is None:
            if not self.must_apply and not any(can_have(figure.name, one) for one in results):
                return CANNOT_TELL, f"no selected task has {figure.name}"
            return FAILED, f"no trial has a value of {figure.name}"
        passes, fails = ("at least", "under") if figure.higher_is_better else ("below", "not below")
        has_passed = value >= limit if figure.higher_is_better else value < limit
        relation = passes if has_passed else fails
        why = f"mean {figure.name} {value:.4f} is {relation} {self.bound:g}"
        return PASSED if has_passed else FAILED, why

    @property
    def why_open(self) -> str:
        return f"the run has no mean {self.figure.name} of all trials"


def parse_gate(text: str, metrics: Sequence[Metric], source: str = "--super-fail-under") -> FailUnder:
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
        return FailUnder(figure=mean_figure(ACCURACY), bound=bound)
    figure = figure_of(named["name"], metrics, given)
    if figure.higher_is_better != (named["sign"] == ":"):
        better, sign = ("higher", ":") if figure.higher_is_better else ("lower", "<")
        raise SuperError(f"{given}: {better} is better: write '{figure.name}{sign}{named['bound']}'")
    return FailUnder(figure=figure, bound=bound_of(given, named["bound"]))


def bound_of(given: str, text: str) -> float:
    try:
        return number(text)
    except ValueError:
        raise SuperError(f"{given}: must be NUMBER, NAME:NUMBER or NAME<NUMBER") from None
