"""The gate `--super-baseline`: how many epochs it needs, what it can find, and what it decides.

Only loaded by a run with a baseline, because what it imports is heavy.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_super.comparison.comparison import by_look, compare
from pytest_super.comparison.earlier import EarlierRuns
from pytest_super.comparison.side import side_of
from pytest_super.errors import SuperError
from pytest_super.gates.next_steps import next_lines
from pytest_super.gates.wording import CANNOT_TELL, FAILED, NOTHING_COMPARED, PASSED, decided_lines
from pytest_super.statistics import decision
from pytest_super.statistics.epochs import schedule
from pytest_super.words import one_line, printable_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_super.comparison.comparison import Comparison, Confidence
    from pytest_super.comparison.side import Side, TaskTrials
    from pytest_super.option_types import Epochs
    from pytest_super.statistics.epochs import Schedule
    from pytest_super.store.results import TrialResult

WORDS = {decision.PASS: PASSED, decision.REGRESSED: FAILED, decision.CANNOT_TELL: CANNOT_TELL}


@dataclass(frozen=True, kw_only=True)
class SetPlan:
    """Of one set: its tasks that the baseline has."""

    schedule: Schedule
    finds: decision.Plan
    """If each task runs in all its epochs."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """How often each task runs at most, and when the run is compared."""

    sets: Mapping[str, SetPlan] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    """By task id."""
    least: int = 1
    """The epoch after which the first look comes. There is one after each further epoch."""

    def confidence_after(self, epoch: int, of_run: Confidence) -> Confidence:
        """How sure the bounds of the look after an epoch must be, so that all are as sure as `of_run`."""

        @cache
        def confidences(set_name: str, sets: int) -> list[float]:
            return self.sets[set_name].schedule.confidences(of_run(set_name, sets))

        def confidence(set_name: str, sets: int) -> float:
            known = confidences(set_name, sets)
            # A set whose tasks need fewer epochs than others has had its last look before.
            return known[min(epoch - self.least, len(known) - 1)]

        return confidence


def plan_of(side: Side, ids: Collection[str], epochs: Epochs, margin: float, drift: float = 0.0) -> RunPlan:
    """Of the tasks `ids`. Those that the baseline does not have run as rarely as possible."""
    common = {id: task for id, task in side.tasks.items() if id in ids}
    most = dict.fromkeys(ids, epochs.least)
    sets = {}
    for name in sorted({task.set for task in common.values()}):
        own = {id: task for id, task in common.items() if task.set == name}
        sets[name] = set_plan(list(own.values()), epochs, margin, drift)
        most |= dict(zip(own, sets[name].schedule.epochs, strict=True))
    return RunPlan(sets=sets, epochs=most, least=epochs.least)


def set_plan(tasks: Sequence[TaskTrials], epochs: Epochs, margin: float, drift: float) -> SetPlan:
    values, weights = [task.values for task in tasks], [task.weight for task in tasks]
    found = schedule(values, weights, least=epochs.least, most=epochs.most, margin=margin)
    finds = decision.plan(values, weights, epochs=found.epochs, margin=margin, drift=drift)
    return SetPlan(schedule=found, finds=finds)


@dataclass(kw_only=True)
class BaselineGate:
    """Compares one run, the candidate."""

    side: Side
    """The baseline."""
    margin: float
    """The drop to exclude, from 0 to 1."""
    drift: float = 0.0
    """The standard deviation of what changes a whole run, from 0 to 1."""
    must_tell: bool
    """Whether the run fails if neither a drop can be excluded nor one is shown."""
    run: str
    """The candidate's id."""
    subject: dict[str, Any]
    """What the candidate tries."""
    earlier: EarlierRuns = field(default_factory=EarlierRuns)
    """Of the same subject."""
    arguments: Sequence[str] = ()
    """The command line of the run, without the name of the program."""
    planned: RunPlan = field(default=RunPlan(), init=False)
    """What `plan` has returned last."""

    def plan(self, ids: Collection[str], epochs: Epochs) -> RunPlan:
        """What can be found with so many epochs of these tasks, and when the run is compared."""
        if self.planned.epochs.keys() != set(ids):
            self.planned = plan_of(self.side, ids, epochs, self.margin, self.drift)
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
            return compare(self.side, candidate, self.margin, confidence, self.drift), ""
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
            arguments=self.arguments,
        )

    def decide(self, comparison: Comparison | None) -> tuple[str, str]:
        """PASSED, FAILED or CANNOT_TELL, and why."""
        if comparison is None:
            return FAILED, NOTHING_COMPARED
        # A command is never cut.
        parts = [one_line("; ".join(decided_lines(comparison))), *next_lines(comparison)]
        return WORDS[comparison.verdict], printable_line("; ".join(parts))
