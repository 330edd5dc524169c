"""Two sides on the tasks that can be compared: differences by set, and a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from itertools import groupby
from operator import attrgetter
from statistics import fmean

from pytest_super.errors import SuperError
from pytest_super.gate import CANNOT_TELL
from pytest_super.gate.difference import (
    PASS,
    Confidence,
    Difference,
    Verdict,
    by_look,
    difference,
    overall,
    risk_of,
    verdicts,
)
from pytest_super.gate.never_solved import with_stand_ins
from pytest_super.gate.planning import epochs_to_detect, standard_error
from pytest_super.gate.samples import Pair, Sample, sample_of
from pytest_super.gate.side import Side, TaskTrials, only_errors, why_left_out


@dataclass(frozen=True, kw_only=True)
class ComparedTask:
    """A task that both sides have under equal conditions."""

    id: str
    baseline: TaskTrials
    candidate: TaskTrials
    is_run: bool = True
    """Whether the candidate has tried it. If not, it has the values that are to be expected."""
    is_same: bool = False
    """Whether its trials got the answers of the baseline's throughout, and ended as they did."""

    @property
    def flip(self) -> str:
        """`lost` if its mean is no longer at least one half, `won` if it is now, else ""."""
        if not self.is_run:
            return ""
        was, is_now = (fmean(side.values) >= 0.5 for side in (self.baseline, self.candidate))
        return "" if was == is_now else "lost" if was else "won"

    @property
    def pair(self) -> Pair:
        """The values of the task in both runs."""
        return Pair(
            baseline=self.baseline.values,
            candidate=self.candidate.values,
            weight=self.candidate.weight,
            is_run=self.is_run,
            repository=self.candidate.repository,
            baseline_epochs=self.baseline.epochs,
            candidate_epochs=self.candidate.epochs,
        )


@dataclass(frozen=True, kw_only=True)
class SetComparison:
    """The headline of one set."""

    set: str
    tasks: Sequence[ComparedTask]
    difference: Difference
    level: float
    """The confidence of each bound of its interval."""
    verdict: Verdict
    margin: float
    hidden: Verdict | None = None
    """The verdict without the errors, if what these trials would have shown can change it."""

    # Worked out only to be told, because an adaptive run compares after each epoch.
    @cached_property
    def further(self) -> int | None:
        """The further epochs that make a drop of the margin detectable; 0 if it is, or if 100 do not help.

        None if the verdict is one, or is one without the errors, or if there are too few tasks and epochs.
        """
        if self.verdict != CANNOT_TELL or self.hidden is not None or self.difference.is_small:
            return None
        # By the noise of the baseline alone, as before a run.
        needed = epochs_to_detect(self.baseline, self.margin) or 0
        return max(needed - max(len(one.candidate.values) for one in self.tasks), 0)

    @cached_property
    def baseline(self) -> Sample:
        """The baseline's trials."""
        return sample_of(
            [task.baseline.values for task in self.tasks], [task.candidate.weight for task in self.tasks]
        )

    @property
    def baseline_error(self) -> float:
        """The standard error of the baseline's mean, which all comparisons with it share."""
        return standard_error(self.baseline)

    @property
    def ran(self) -> list[ComparedTask]:
        """The tasks that the candidate has tried."""
        return [one for one in self.tasks if one.is_run]

    @property
    def not_run(self) -> list[ComparedTask]:
        """The tasks that the candidate has left out."""
        return [one for one in self.tasks if not one.is_run]

    @property
    def is_same(self) -> bool:
        """Whether all its trials are those of the baseline."""
        return all(one.is_same for one in self.ran)

    def flipped(self, flip: str) -> list[ComparedTask]:
        """The tasks with this flip, the largest changes first."""
        found = [one for one in self.tasks if one.flip == flip]
        return sorted(found, key=lambda one: -abs(one.pair.difference))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All sets, the overall verdict, and what was left out."""

    baseline: Side
    candidate: Side
    margin: float
    sets: Sequence[SetComparison]
    verdict: Verdict
    left_out: Mapping[str, list[str]]
    """Tasks that cannot be compared, by the reason."""
    too_many_errors: Side | None = None
    """The side with so many errors that nothing is decided."""

    @property
    def risks(self) -> tuple[float, float]:
        """How likely the first look at the candidate was wrong at most, and how likely this one is."""
        return risk_of(1), risk_of(self.candidate.looks + 1)

    @property
    def baseline_age(self) -> int | None:
        """How many days its newest trial is older than that of the candidate; None if that is not known."""
        newest = max(self.candidate.runs.values(), default="")
        return self.baseline.age(date.fromisoformat(newest)) if newest else None

    @property
    def ran(self) -> list[ComparedTask]:
        """The tasks that the candidate has run."""
        return [task for one in self.sets for task in one.ran]

    @property
    def flips(self) -> list[ComparedTask]:
        """The tasks that were `lost` or `won`, set by set."""
        return [task for one in self.sets for word in ("lost", "won") for task in one.flipped(word)]


def compare(
    baseline: Side, candidate: Side, margin: float, confidence: Confidence | None = None, sides: int = 1
) -> Comparison:
    """`margin` is the drop to rule out, from 0 to 1. Raises SuperError if nothing can be compared.

    Without a `confidence`, the look is the next one at the candidate. `sides` are those that it is compared
    with, which share the error.
    """
    candidate = with_stand_ins(baseline, candidate)
    left_out = dict(why_left_out(baseline, candidate))
    excluded = {id for ids in left_out.values() for id in ids}
    if not (ids := [id for id in candidate.tasks if id not in excluded]):
        why = "; ".join(f"{reason}: {', '.join(ids[:5])}" for reason, ids in left_out.items())
        raise SuperError(f"{baseline.name} and {candidate.name} have no task that can be compared: {why}")
    confidence = confidence or by_look(candidate.looks + 1)
    sets = compared_sets(baseline, candidate, ids, margin, confidence, sides)
    invalid = next((side for side in (baseline, candidate) if side.has_too_many_errors), None)
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        margin=margin,
        sets=sets,
        verdict=CANNOT_TELL if invalid is not None else overall([one.verdict for one in sets]),
        left_out=left_out,
        too_many_errors=invalid,
    )


def compared_sets(
    baseline: Side, candidate: Side, ids: Sequence[str], margin: float, confidence: Confidence, sides: int
) -> list[SetComparison]:
    decide = partial(verdicts, margin=margin, confidence=confidence, sides=sides)
    tasks = by_set(baseline, candidate, ids)
    found = differences_of(tasks)
    extremes = [decide(differences_of(filled)) for filled in with_errors(baseline, candidate, ids)]
    compared = []
    for name, decided in decide(found).items():
        is_same = all(one.is_same or not one.is_run for one in tasks[name])
        is_hidden = not is_same and decided != CANNOT_TELL and any(one[name] != decided for one in extremes)
        decided = PASS if is_same else decided
        compared.append(
            SetComparison(
                set=name,
                tasks=tasks[name],
                difference=found[name],
                level=confidence(name, 1),
                verdict=CANNOT_TELL if is_hidden else decided,
                margin=margin,
                hidden=decided if is_hidden else None,
            )
        )
    return compared


def by_set(baseline: Side, candidate: Side, ids: Iterable[str]) -> dict[str, list[ComparedTask]]:
    """Map the baseline's sets to the tasks with these ids."""
    # A trial that was an error, also one of a task that is left out for it, is not the baseline's.
    is_coupled = candidate.answers == baseline.run and not candidate.errors
    tasks = []
    for id in ids:
        old, new = baseline.tasks[id], candidate.tasks[id]
        is_run, is_same = id not in candidate.not_run, is_coupled and is_replay(old, new)
        tasks.append(ComparedTask(id=id, baseline=old, candidate=new, is_run=is_run, is_same=is_same))
    own_set = attrgetter("baseline.set")
    return {name: list(own) for name, own in groupby(sorted(tasks, key=own_set), own_set)}


def differences_of(sets: Mapping[str, Iterable[ComparedTask]]) -> dict[str, Difference]:
    return {name: difference([one.pair for one in tasks]) for name, tasks in sets.items()}


def is_replay(old: TaskTrials, new: TaskTrials) -> bool:
    """Whether the trials of a task got the recorded answers of others throughout, and ended as they did."""
    # The values of a baseline are numbered as its answers are.
    before = dict(enumerate(old.values, 1))
    return len(new.replayed) == len(new.values) and new.replayed.items() <= before.items()


def with_errors(
    baseline: Side, candidate: Side, compared: Sequence[str]
) -> Iterator[dict[str, list[ComparedTask]]]:
    """The tasks by set, if the errors had been worst, and best, for the candidate: nothing without errors.

    A verdict must hold whatever they would have shown: they can have hit only trials that would have failed.
    `compared` are the ids of the tasks of which both sides have valid trials.
    """
    ids = [*compared, *only_errors(baseline, candidate), *only_errors(candidate, baseline)]
    if {*candidate.errors, *baseline.errors} & {*ids}:
        for value in (0.0, 1.0):
            sides = filled(baseline, candidate, 1 - value), filled(candidate, baseline, value)
            yield by_set(*sides, ids)


def filled(side: Side, other: Side, value: float) -> Side:
    """The side, if each of its errors had been a trial with this value."""
    tasks = dict(side.tasks)
    for id, number in side.errors.items():
        if (own := side.tasks.get(id)) is not None:
            values = [*own.values, *[value] * number]
            tasks[id] = replace(own, values=values, of_runs=[*own.by_run, number])
        elif id in other.tasks:
            tasks[id] = replace(other.tasks[id], values=[value] * number, of_runs=[])
    return replace(side, tasks=tasks)
