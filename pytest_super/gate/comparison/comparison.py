"""Two sides on the tasks that can be compared: differences by set, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean

from pytest_super.errors import SuperError
from pytest_super.gate.comparison.errors import with_errors
from pytest_super.gate.comparison.matching import why_left_out
from pytest_super.gate.comparison.never_solved import with_stand_ins
from pytest_super.gate.comparison.over_time import age_of
from pytest_super.gate.comparison.pairing import is_coupled, pair_of
from pytest_super.gate.comparison.rule import Confidence, Rule, by_look, overall, risk_of
from pytest_super.gate.comparison.side import Side, TaskTrials
from pytest_super.gate.statistics.baseline import standard_error
from pytest_super.gate.statistics.bounds import Difference
from pytest_super.gate.statistics.decision import CANNOT_TELL, Verdict, epochs_to_decide, is_refused
from pytest_super.gate.statistics.samples import Pair

# The numbers of epochs of a baseline that are tried for an advice.
LONGER_BASELINES = (10, 20, 50, 100)


@dataclass(frozen=True, kw_only=True)
class ComparedTask:
    """A task that both sides have under equal conditions."""

    id: str
    baseline: TaskTrials
    candidate: TaskTrials
    is_run: bool = True
    """Whether the candidate has tried it. If not, it has the values that are to be expected."""
    is_coupled: bool = False
    """Whether the candidate got the recorded answers of the baseline."""

    @property
    def flip(self) -> str:
        """`lost` if its mean is no longer at least one half, `won` if it is now, else ""."""
        if not self.is_run:
            return ""
        was, is_now = (fmean(side.values) >= 0.5 for side in (self.baseline, self.candidate))
        return "" if was == is_now else "lost" if was else "won"

    @property
    def pair(self) -> Pair:
        return pair_of(self.baseline, self.candidate, is_coupled=self.is_coupled, is_run=self.is_run)


@dataclass(frozen=True, kw_only=True)
class More:
    """What would decide if the means stayed as they are."""

    epochs: int | None
    """How many further epochs of the candidate; None if no number up to 100 would."""
    baseline: int | None = None
    """The epochs of the baseline with which so many would; None if more of them do not pay."""


@dataclass(frozen=True, kw_only=True)
class SetComparison:
    """The headline of one set."""

    set: str
    tasks: Sequence[ComparedTask]
    difference: Difference
    level: float
    """The confidence of each bound of its interval."""
    verdict: Verdict
    more: More | None = None
    """What would decide; None if the verdict is one, or is one without the errors."""
    hidden: Verdict | None = None
    """The verdict without the errors, if what these trials would have shown can change it."""

    @property
    def baseline_error(self) -> float:
        """The standard error of the baseline's mean, which all comparisons with it share."""
        sides = [task.baseline for task in self.tasks]
        return standard_error([one.values for one in sides], [task.candidate.weight for task in self.tasks])

    @property
    def ran(self) -> list[ComparedTask]:
        """The tasks that the candidate has tried."""
        return [one for one in self.tasks if one.is_run]

    @property
    def not_run(self) -> list[ComparedTask]:
        """The tasks that the candidate has left out."""
        return [one for one in self.tasks if not one.is_run]

    @property
    def pairs(self) -> tuple[int, int]:
        """How many trials are paired with the baseline's, and how many of them have another value."""
        differences = [one for task in self.tasks for one in task.pair.differences]
        return len(differences), sum(one != 0 for one in differences)

    def flipped(self, flip: str) -> list[ComparedTask]:
        """The tasks with this flip, the largest changes first."""
        found = [one for one in self.tasks if one.flip == flip]
        return sorted(found, key=lambda one: -abs(one.pair.difference))

    @property
    def is_refused(self) -> bool:
        """Whether it has too few tasks and epochs for any verdict."""
        return is_refused(self.difference)


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
    folded: int = 0
    """How many trials got recorded answers to requests that differ in what is not compared."""
    without_folded: Verdict = CANNOT_TELL
    """The verdict without these trials."""

    @property
    def risks(self) -> tuple[float, float]:
        """How likely the first look at the candidate was wrong at most, and how likely this one is."""
        return risk_of(1), risk_of(self.candidate.looks + 1)

    @property
    def baseline_age(self) -> int | None:
        """How many days its newest trial is older than that of the candidate; None if that is not known."""
        newest = max(self.candidate.runs.values(), default="")
        return age_of(self.baseline, date.fromisoformat(newest)) if newest else None

    @property
    def ran(self) -> list[ComparedTask]:
        """The tasks that the candidate has run."""
        return [task for one in self.sets for task in one.ran]

    @property
    def flips(self) -> list[ComparedTask]:
        """The tasks that were `lost` or `won`, set by set."""
        return [task for one in self.sets for word in ("lost", "won") for task in one.flipped(word)]


def compare(
    baseline: Side, candidate: Side, margin: float, confidence: Confidence | None = None, drift: float = 0.0
) -> Comparison:
    """`margin` is the drop to rule out, from 0 to 1. Raises SuperError if nothing can be compared.

    Without a `confidence`, the look is the next one at the candidate. `drift` is the standard deviation of
    what changes a whole run, from 0 to 1.
    """
    candidate = with_stand_ins(baseline, candidate)
    left_out = dict(why_left_out(baseline, candidate))
    excluded = {id for ids in left_out.values() for id in ids}
    tasks = [
        ComparedTask(
            id=id,
            baseline=baseline.tasks[id],
            candidate=task,
            is_run=id not in candidate.not_run,
            is_coupled=is_coupled(baseline, candidate),
        )
        for id, task in candidate.tasks.items()
        if id not in excluded
    ]
    if not tasks:
        why = "; ".join(f"{reason}: {', '.join(ids[:5])}" for reason, ids in left_out.items())
        raise SuperError(f"{baseline.name} and {candidate.name} have no task that can be compared: {why}")
    look = candidate.looks + 1
    rule = Rule(margin=margin, confidence=confidence or by_look(look), drift=drift)
    sets = compared_sets(baseline, candidate, tasks, rule, by_look(look + 1))
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
    baseline: Side, candidate: Side, tasks: Sequence[ComparedTask], rule: Rule, next_look: Confidence
) -> list[SetComparison]:
    names = sorted({one.baseline.set for one in tasks})
    own = {name: [one for one in tasks if one.baseline.set == name] for name in names}
    pairs = {name: [one.pair for one in of_set] for name, of_set in own.items()}
    found = rule.differences(pairs)
    valid = rule.verdicts(found)
    extremes = [
        rule.verdicts(rule.differences({name: filled[name] for name in own}))
        for filled in with_errors(baseline, candidate, [one.id for one in tasks])
    ]
    compared = []
    for name, decided in valid.items():
        is_hidden = decided != CANNOT_TELL and any(one[name] != decided for one in extremes)
        compared.append(
            SetComparison(
                set=name,
                tasks=own[name],
                difference=found[name],
                level=rule.confidence(name, 1),
                verdict=CANNOT_TELL if is_hidden else decided,
                # With the strictest level of several sets.
                more=more_for(pairs[name], rule, next_look(name, len(own)))
                if decided == CANNOT_TELL
                else None,
                hidden=decided if is_hidden else None,
            )
        )
    return compared


def more_for(pairs: Sequence[Pair], rule: Rule, level: float) -> More:
    """A longer baseline pays where it saves more epochs of the candidate than it takes."""
    has = max(len(pair.baseline) for pair in pairs)
    lengths = (has, *(length for length in LONGER_BASELINES if length > has))
    needed = {
        length: epochs_to_decide(pairs, rule.margin, level, rule.drift, least=length) for length in lengths
    }
    total = {length: length + epochs for length, epochs in needed.items() if epochs is not None}
    best = min(total, key=lambda length: total[length], default=has)
    return More(epochs=needed[best], baseline=None if best == has else best)
