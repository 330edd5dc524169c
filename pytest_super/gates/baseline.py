"""The gate `--super-baseline`: the run next to a baseline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.gates.plan import plan_of
from pytest_super.gates.verdict import GateVerdict
from pytest_super.gates.wording import CANNOT_TELL, FAILED, NOTHING_COMPARED, PASSED, of_set, why_undecided
from pytest_super.words import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pytest_super.comparison.comparison import Comparison
    from pytest_super.comparison.side import Side
    from pytest_super.gates.plan import RunPlan
    from pytest_super.option_types import Epochs
    from pytest_super.statistics import decision
    from pytest_super.store.results import TrialResult

WORDS: Mapping[decision.Verdict, str] = {"pass": PASSED, "regressed": FAILED, "cannot tell": CANNOT_TELL}


@dataclass(kw_only=True)
class BaselineGate:
    """Compares one run, the candidate."""

    side: Side
    """The baseline."""
    margin: float
    """The drop to exclude, from 0 to 1."""
    must_tell: bool
    """Whether the run fails if neither a drop can be excluded nor one is shown."""
    run: str
    """The candidate's id."""
    subject: dict[str, Any]
    """What the candidate tries."""
    planned: RunPlan | None = field(default=None, init=False)
    """What `plan` has returned last."""

    def plan(self, ids: Collection[str], epochs: Epochs) -> RunPlan:
        """What can be found with so many epochs of these tasks, and when the run is compared."""
        if self.planned is None or self.planned.epochs.keys() != set(ids):
            self.planned = plan_of(self.side, ids, epochs, self.margin)
        return self.planned

    def compared(self, results: Iterable[TrialResult], epoch: int) -> tuple[Comparison | None, str]:
        """The comparison, or None and why nothing can be compared.

        By the trials until the end of the epoch, and as sure as the plan asks for after it.
        """
        from pytest_super.comparison.comparison import by_one_look, compare
        from pytest_super.comparison.side import side_of

        candidate = side_of(self.run, self.subject, (one for one in results if one.epoch <= epoch))
        confidence = by_one_look if self.planned is None else self.planned.confidence_after(epoch)
        try:
            return compare(self.side, candidate, self.margin, confidence), ""
        except SuperError as error:
            return None, str(error)


def verdict_of(comparison: Comparison | None) -> GateVerdict:
    if comparison is None:
        return GateVerdict(FAILED, NOTHING_COMPARED)
    sets = (of_set(one, comparison.margin) for one in comparison.sets)
    return GateVerdict(WORDS[comparison.verdict], one_line(why_undecided(comparison) or "; ".join(sets)))
