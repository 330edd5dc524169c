"""The gate `--super-baseline`: how many epochs it needs, what it can find, and what it decides.

Only loaded by a run with a baseline, because what it imports is heavy.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from math import fsum
from typing import TYPE_CHECKING, Any

from pytest_super.comparison.comparison import by_look, compare
from pytest_super.comparison.earlier import EarlierRuns
from pytest_super.comparison.side import side_of
from pytest_super.errors import SuperError
from pytest_super.gates.next_steps import next_lines
from pytest_super.gates.wording import (
    CANNOT_TELL,
    FAILED,
    NEVER_SOLVED,
    NOTHING_COMPARED,
    PASSED,
    decided_lines,
)
from pytest_super.statistics import decision
from pytest_super.statistics.epochs import schedule
from pytest_super.statistics.never_solved import never_solved
from pytest_super.words import counted, one_line, printable_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_super.comparison.comparison import Comparison, Confidence
    from pytest_super.comparison.side import Side, TaskTrials
    from pytest_super.option_types import Epochs
    from pytest_super.statistics.epochs import Schedule
    from pytest_super.store.results import TrialResult

# Of the margin that tasks which are not run can hide.
MOST_HIDDEN = 1 / 5
WORDS = {decision.PASS: PASSED, decision.REGRESSED: FAILED, decision.CANNOT_TELL: CANNOT_TELL}


@dataclass(frozen=True, kw_only=True)
class SetPlan:
    """Of one set: its tasks that the baseline has."""

    tasks: Sequence[str]
    """Those that run."""
    schedule: Schedule
    """Of them."""
    finds: decision.Plan
    """If each of them runs in all its epochs."""
    never_solved: Sequence[str] = ()
    """Those that need not run, because the baseline never solved them."""

    @property
    def is_audited(self) -> bool:
        """Whether they run all the same."""
        return not set(self.never_solved).isdisjoint(self.tasks)


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """How often each task runs at most, and when the run is compared."""

    sets: Mapping[str, SetPlan] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    """By task id."""
    least: int = 1
    """The epoch after which the first look comes. There is one after each further epoch."""

    @property
    def not_run(self) -> set[str]:
        """The tasks that do not run at all."""
        return {id for one in self.sets.values() if not one.is_audited for id in one.never_solved}

    def run_too(self, ids: Collection[str]) -> RunPlan:
        """The plan if none of these tasks can do without running."""
        return replace(
            self,
            sets={
                name: replace(one, never_solved=[id for id in one.never_solved if id not in ids])
                for name, one in self.sets.items()
            },
        )

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


@dataclass(frozen=True, kw_only=True)
class LeavesOut:
    """Of a run that need not run the tasks that its baseline never solved."""

    must_run: Collection[str] = ()
    """Those of them that run all the same, if there are such."""
    is_audited: bool = False
    """Whether all of them do."""


def plan_of(
    side: Side,
    ids: Collection[str],
    epochs: Epochs,
    margin: float,
    drift: float = 0.0,
    leaves_out: LeavesOut | None = None,
) -> RunPlan:
    """Of the tasks `ids`. Those that the baseline does not have run as rarely as possible."""
    common = {id: task for id, task in side.tasks.items() if id in ids}
    most = dict.fromkeys(ids, epochs.least)
    sets = {}
    for name in sorted({task.set for task in common.values()}):
        own = {id: task for id, task in common.items() if task.set == name}
        found = sets[name] = set_plan(own, epochs, margin, drift)
        if leaves_out is not None:
            found = sets[name] = cheaper(found, part_plan(own, epochs, margin, drift, leaves_out), leaves_out)
        most |= dict(zip(found.tasks, found.schedule.epochs, strict=True))
    return RunPlan(sets=sets, epochs=most, least=epochs.least)


def set_plan(tasks: Mapping[str, TaskTrials], epochs: Epochs, margin: float, drift: float) -> SetPlan:
    values, weights = values_of(tasks), weights_of(tasks)
    found = schedule(values, weights, least=epochs.least, most=epochs.most, margin=margin)
    finds = decision.plan(values, weights, epochs=found.epochs, margin=margin, drift=drift)
    return SetPlan(tasks=list(tasks), schedule=found, finds=finds)


def part_plan(
    tasks: Mapping[str, TaskTrials], epochs: Epochs, margin: float, drift: float, leaves_out: LeavesOut
) -> SetPlan | None:
    """Without the tasks that were never solved; None if there are none, or they could hide too much."""
    never = never_solved(values_of(tasks), weights_of(tasks))
    ids = [id for place, id in enumerate(tasks) if place in never.tasks and id not in leaves_out.must_run]
    rest = {id: task for id, task in tasks.items() if id not in ids}
    if not ids or not rest:
        return None
    share = fsum(weights_of(rest)) / fsum(weights_of(tasks))
    hidden = never.rate * (1 - share)
    if hidden > MOST_HIDDEN * margin:
        return None
    # Differences of the rest count by its share.
    found = set_plan(rest, epochs, (margin - hidden) / share, drift / share)
    drop = found.finds.detectable
    finds = replace(found.finds, detectable=None if drop is None else share * drop)
    return replace(found, finds=finds, never_solved=ids)


def cheaper(whole: SetPlan, part: SetPlan | None, leaves_out: LeavesOut) -> SetPlan:
    """Without some tasks the others can need more epochs."""
    if part is None or sum(part.schedule.epochs) >= sum(whole.schedule.epochs):
        return whole
    return replace(whole, never_solved=part.never_solved) if leaves_out.is_audited else part


def values_of(tasks: Mapping[str, TaskTrials]) -> list[list[float]]:
    return [task.values for task in tasks.values()]


def weights_of(tasks: Mapping[str, TaskTrials]) -> list[float]:
    return [task.weight for task in tasks.values()]


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
    leaves_out: LeavesOut | None = None
    """None if all tasks run."""
    planned: RunPlan = field(default=RunPlan(), init=False)
    """What `plan` has returned last, without the tasks that `run_too` has named."""

    def plan(self, ids: Collection[str], epochs: Epochs) -> RunPlan:
        """What can be found with so many epochs of these tasks, and when the run is compared."""
        if self.planned.epochs.keys() != set(ids):
            self.planned = plan_of(self.side, ids, epochs, self.margin, self.drift, self.leaves_out)
        return self.planned

    def run_too(self, ids: Collection[str]) -> None:
        """Run these tasks, of which the baseline can say nothing: perhaps their conditions are others."""
        self.planned = self.planned.run_too(ids)

    def why_not_run(self, id: str) -> str:
        """ "" if the task runs."""
        if id not in self.planned.not_run:
            return ""
        trials = counted(len(self.side.tasks[id].values), "trial")
        return NEVER_SOLVED.format(trials=trials, baseline=self.side.name)

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
        absent = {id: self.side.tasks[id] for id in sorted(self.planned.not_run)}
        before = self.earlier.like(own, self.run, absent)
        side = side_of(self.run, self.subject, [*before, *own])
        return replace(
            side,
            pooled=Counter(one.resumed_from for one in before),
            looks=self.earlier.looks,
            not_run=list(absent),
            arguments=self.arguments,
        )

    def decide(self, comparison: Comparison | None) -> tuple[str, str]:
        """PASSED, FAILED or CANNOT_TELL, and why."""
        if comparison is None:
            return FAILED, NOTHING_COMPARED
        # A command is never cut.
        parts = [one_line("; ".join(decided_lines(comparison))), *next_lines(comparison)]
        return WORDS[comparison.verdict], printable_line("; ".join(parts))
