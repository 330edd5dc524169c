"""The gate `--super-baseline`: what it decides on a run, and the one of `--super-anchor` beside it.

Only loaded by a run with a baseline, because what it imports is heavy.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_super.errors import SuperError
from pytest_super.gate import CANNOT_TELL, FAILED, PASSED, Selected
from pytest_super.gate.comparison import Comparison, compare
from pytest_super.gate.difference import PASS, REGRESSED, by_look
from pytest_super.gate.earlier import EarlierRuns
from pytest_super.gate.plan import RunPlan, plan_of
from pytest_super.gate.side import Side, side_of
from pytest_super.gate.wording import decided_lines
from pytest_super.option_types import PASS_CHANCE, Epochs
from pytest_super.store.results import TrialResult
from pytest_super.words import one_line

GOES_ON = "CANNOT TELL does not fail the run: see --super-cannot-tell"
WORDS = {PASS: PASSED, REGRESSED: FAILED, CANNOT_TELL: CANNOT_TELL}


@dataclass(kw_only=True)
class BaselineGate:
    """Compares one run, the candidate."""

    side: Side
    """The baseline."""
    margin: float
    """The drop to rule out, from 0 to 1."""
    pass_chance: float = PASS_CHANCE
    """How often an agent that has not changed shall pass by the last look, above 0 and below 1."""
    must_tell: bool
    """Whether the run fails if neither a drop is ruled out nor one is shown."""
    run: str
    """The candidate's id."""
    subject: dict[str, Any]
    """What the candidate tries."""
    earlier: EarlierRuns = field(default_factory=EarlierRuns)
    """Of the same subject."""
    arguments: Sequence[str] = ()
    """The command line of the run, without the name of the program."""
    answers: str = ""
    """The run whose recorded answers the trials get."""
    is_anchor: bool = False
    """Whether the side is an older one, compared with beside the baseline."""
    sides: int = 1
    """How many sides the run is compared with, which share the error of a false alarm."""
    leaves_out: bool = False
    """Whether tasks need not run that the baseline never solved."""
    planned: RunPlan = field(default=RunPlan(), init=False)
    """What `plan` has returned last."""

    def plan(self, selected: Selected, epochs: Epochs) -> RunPlan:
        """What can be found with so many epochs of these tasks, and when the run is compared."""
        self.planned = plan_of(
            self.side, selected, epochs, self.margin, pass_chance=self.pass_chance, leaves_out=self.leaves_out
        )
        return self.planned

    def compared(self, results: Iterable[TrialResult], epoch: int) -> tuple[Comparison | None, str]:
        """The comparison, or None and why nothing can be compared.

        By the trials until the end of the epoch, and as sure as the plan asks for after it.
        """
        own = [one for one in results if one.epoch <= epoch]
        candidate = self.candidate(own)
        confidence = by_look(candidate.looks + 1)
        if self.planned.sets:
            confidence = self.planned.confidence_after(epoch, confidence)
        try:
            return compare(self.side, candidate, self.margin, confidence, self.sides), ""
        except SuperError as error:
            return None, str(error)

    def candidate(self, own: Sequence[TrialResult]) -> Side:
        """The run with its earlier trials."""
        before = self.earlier.like(own, self.run)
        side = side_of(self.run, self.subject, [*before, *own])
        return replace(
            side,
            pooled=Counter(one.resumed_from for one in before),
            looks=self.earlier.looks,
            subjects=self.earlier.subjects,
            not_run=self.planned.not_run,
            arguments=self.arguments,
            answers=self.answers,
        )

    def decide(self, comparison: Comparison) -> tuple[str, list[str]]:
        """PASSED, FAILED or CANNOT_TELL, and the lines that say so, that of the worst set last."""
        lines = [one_line(line) for line in decided_lines(comparison)]
        if self.is_anchor:
            return WORDS[comparison.verdict], [f"{line} (anchor {self.side.name})" for line in lines]
        if comparison.verdict == CANNOT_TELL:
            fails = self.must_tell or bool(comparison.candidate.errors)
            lines = [*self.planned.weak_lines(self.margin), *([] if fails else [GOES_ON]), *lines]
        return WORDS[comparison.verdict], lines
