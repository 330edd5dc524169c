"""The gate `--super-baseline`: how many epochs it needs, what it can find, and what it decides.

Only loaded by a run with a baseline, because what it imports is heavy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import fsum
from typing import TYPE_CHECKING, Any

from pytest_super.errors import SuperError
from pytest_super.gate import Selected
from pytest_super.gate.comparison.comparison import Comparison, compare
from pytest_super.gate.comparison.earlier import EarlierRuns
from pytest_super.gate.comparison.never_solved import never_solved_of
from pytest_super.gate.comparison.rule import Confidence, by_look
from pytest_super.gate.comparison.side import Side, TaskTrials, side_of
from pytest_super.gate.statistics import decision
from pytest_super.gate.statistics.epochs import Schedule, schedule
from pytest_super.gate.wording import (
    CANNOT_TELL,
    FAILED,
    GOES_ON,
    PASSED,
    TOO_FEW_EPOCHS,
    TOO_FEW_TASKS,
    decided_lines,
)
from pytest_super.store.results import TrialResult
from pytest_super.words import counted, one_line

if TYPE_CHECKING:
    from pytest_super.option_types import Epochs

# Of the margin, what tasks that are not run can hide at most.
MOST_HIDDEN = 1 / 5
WORDS = {decision.PASS: PASSED, decision.REGRESSED: FAILED, decision.CANNOT_TELL: CANNOT_TELL}


@dataclass(frozen=True, kw_only=True)
class SetPlan:
    """The tasks of one set that are compared with the baseline, and run."""

    tasks: Sequence[str]
    schedule: Schedule
    finds: decision.Plan
    """If each of them runs in all its epochs."""
    needed: Callable[[], int | None]
    """The epochs that would find a drop of the margin; None if 100 would not. Only worked out to be told."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """How often each task runs at most, and when the run is compared."""

    sets: Mapping[str, SetPlan] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    """By task id; 0 for those that do not run, because the baseline never solved them."""
    least: int = 1
    """The epoch after which the first look comes. There is one after each further epoch."""

    @property
    def not_run(self) -> list[str]:
        """The tasks that do not run."""
        return sorted(id for id, epochs in self.epochs.items() if not epochs)

    def weak_lines(self, margin: float) -> Iterator[str]:
        """Say for each set that a drop of `margin` cannot be found, and what would find it."""
        for name, one in self.sets.items():
            if one.finds.can_find(margin):
                continue
            drop = one.finds.detectable
            of = "no drop" if drop is None else f"a drop of {100 * drop:.1f} points"
            epochs = one.needed()
            words = TOO_FEW_TASKS if epochs is None else TOO_FEW_EPOCHS
            yield words.format(set=name, drop=of, margin=100 * margin, needed=counted(epochs or 0, "epoch"))

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


def plan_of(
    side: Side,
    selected: Selected,
    epochs: Epochs,
    margin: float,
    *,
    leaves_out: bool = False,
) -> RunPlan:
    """Plan the run. Tasks that cannot be compared run as rarely as possible.

    If it `leaves_out` tasks, those that the baseline never solved need not run.
    """
    common = {id: task for id, task in side.tasks.items() if id in selected.ids and id not in selected.apart}
    most = dict.fromkeys(selected.ids, epochs.least)
    sets = {}
    for name in sorted({task.set for task in common.values()}):
        own = {id: task for id, task in common.items() if task.set == name}
        found = set_plan(own, epochs, margin)
        part = part_plan(own, epochs, margin, selected.must_run) if leaves_out else None
        # Without some tasks the others can need more epochs.
        if part is not None and sum(part.schedule.epochs) < sum(found.schedule.epochs):
            found = part
        sets[name] = found
        most |= dict.fromkeys(own, 0) | dict(zip(found.tasks, found.schedule.epochs, strict=True))
    return RunPlan(sets=sets, epochs=most, least=epochs.least)


def set_plan(tasks: Mapping[str, TaskTrials], epochs: Epochs, margin: float) -> SetPlan:
    values, weights = [task.values for task in tasks.values()], weights_of(tasks)
    found = schedule(values, weights, least=epochs.least, most=epochs.most, margin=margin)
    finds = decision.plan(values, weights, epochs=found.epochs, margin=margin)
    needed = partial(decision.epochs_to_detect, values, weights, margin=margin)
    return SetPlan(tasks=list(tasks), schedule=found, finds=finds, needed=needed)


def part_plan(
    tasks: Mapping[str, TaskTrials], epochs: Epochs, margin: float, must_run: Collection[str]
) -> SetPlan | None:
    """Leave out tasks that were never solved; None if there are none, or they could hide too much."""
    never, rate = never_solved_of(tasks)
    rest = {id: task for id, task in tasks.items() if id in must_run or id not in never}
    if not 0 < len(rest) < len(tasks):
        return None
    share = fsum(weights_of(rest)) / fsum(weights_of(tasks))
    hidden = rate * (1 - share)
    if hidden > MOST_HIDDEN * margin:
        return None
    # Differences of the rest count by its share.
    found = set_plan(rest, epochs, (margin - hidden) / share)
    drop = found.finds.detectable
    return replace(found, finds=replace(found.finds, detectable=None if drop is None else share * drop))


def weights_of(tasks: Mapping[str, TaskTrials]) -> list[float]:
    return [task.weight for task in tasks.values()]


@dataclass(kw_only=True)
class BaselineGate:
    """Compares one run, the candidate."""

    side: Side
    """The baseline."""
    margin: float
    """The drop to rule out, from 0 to 1."""
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
    leaves_out: bool = False
    """Whether tasks need not run that the baseline never solved."""
    planned: RunPlan = field(default=RunPlan(), init=False)
    """What `plan` has returned last."""
    _planned_for: Selected | None = field(default=None, init=False)

    def plan(self, selected: Selected, epochs: Epochs) -> RunPlan:
        """What can be found with so many epochs of these tasks, and when the run is compared."""
        if self._planned_for != selected:
            self._planned_for = selected
            self.planned = plan_of(self.side, selected, epochs, self.margin, leaves_out=self.leaves_out)
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
            return compare(self.side, candidate, self.margin, confidence), ""
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
            not_run=self.planned.not_run,
            arguments=self.arguments,
            answers=self.answers,
        )

    def decide(self, comparison: Comparison) -> tuple[str, list[str]]:
        """PASSED, FAILED or CANNOT_TELL, and the lines that say so, that of the worst set last."""
        lines = [one_line(line) for line in decided_lines(comparison)]
        if comparison.verdict == decision.CANNOT_TELL:
            fails = self.must_tell or bool(comparison.candidate.errors)
            lines = [*self.planned.weak_lines(self.margin), *([] if fails else [GOES_ON]), *lines]
        return WORDS[comparison.verdict], lines
