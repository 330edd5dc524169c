"""Two sides on the tasks that can be compared: differences by set, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pytest_super.errors import SuperError
from pytest_super.statistics.decision import (
    CANNOT_TELL,
    PASS,
    REGRESSED,
    Verdict,
    chance_of_no_drop,
    epochs_to_decide,
    is_refused,
    verdict,
)
from pytest_super.statistics.difference import LEVEL, Difference, Pair, difference
from pytest_super.statistics.errors import are_too_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_super.comparison.side import Side, TaskTrials

Confidence: TypeAlias = "Callable[[str, int], float]"
"""How sure each one-sided bound of a set must be, if so many sets share the error."""


def by_one_look(_set: str, sets: int) -> float:
    return 1 - (1 - LEVEL) / sets


class Digests(Protocol):
    """What must be equal where trials of a task are compared."""

    @property
    def conditions(self) -> str: ...
    @property
    def scoring(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class ComparedTask:
    """A task that both sides have under equal conditions."""

    id: str
    baseline: TaskTrials
    candidate: TaskTrials

    @property
    def flip(self) -> str:
        """`lost` if its mean is no longer at least one half, `won` if it is now, else ""."""
        was, is_now = (fmean(side.values) >= 0.5 for side in (self.baseline, self.candidate))
        return "" if was == is_now else "lost" if was else "won"

    @property
    def pair(self) -> Pair:
        return Pair(
            baseline=self.baseline.values, candidate=self.candidate.values, weight=self.candidate.weight
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
    more_epochs: int | None
    """How many further epochs would decide; None if the verdict is one, or no number below 100 would."""

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

    @property
    def flips(self) -> list[ComparedTask]:
        """The tasks that were `lost` or `won`, set by set."""
        return [task for one in self.sets for word in ("lost", "won") for task in one.flipped(word)]


def compare(
    baseline: Side,
    candidate: Side,
    margin: float,
    confidence: Confidence = by_one_look,
    drift: float = 0.0,
) -> Comparison:
    """`margin` is the drop to exclude, from 0 to 1. Raises SuperError if nothing can be compared.

    `drift` is the standard deviation of what changes a whole run, from 0 to 1.
    """
    left_out = dict(why_left_out(baseline, candidate))
    excluded = {id for ids in left_out.values() for id in ids}
    tasks = [
        ComparedTask(id=id, baseline=baseline.tasks[id], candidate=task)
        for id, task in candidate.tasks.items()
        if id not in excluded
    ]
    if not tasks:
        why = "; ".join(f"{reason}: {', '.join(ids[:5])}" for reason, ids in left_out.items())
        raise SuperError(f"{baseline.name} and {candidate.name} have no task that can be compared: {why}")
    sets = compared_sets(tasks, margin, confidence, drift)
    too_many = (side for side in (baseline, candidate) if are_too_many(side.errors, side.trials))
    invalid = next(too_many, None)
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        margin=margin,
        sets=sets,
        verdict=CANNOT_TELL if invalid is not None else overall([one.verdict for one in sets]),
        left_out=left_out,
        too_many_errors=invalid,
    )


def why_left_out(baseline: Side, candidate: Side) -> Iterator[tuple[str, list[str]]]:
    """The reasons, each with the tasks for which it is the first."""
    both = [id for id in candidate.tasks if id in baseline.tasks]
    pairs = {id: (baseline.tasks[id], candidate.tasks[id]) for id in both}
    different: dict[str, list[str]] = {}
    for id, (old, new) in pairs.items():
        different.setdefault(why_different(old, new), []).append(id)
    reasons = {
        "its conditions differ between trials of one side": sorted({*baseline.mixed, *candidate.mixed}),
        f"only in {baseline.name}": sorted(
            baseline.tasks.keys() - candidate.tasks.keys() - {*candidate.mixed}
        ),
        f"only in {candidate.name}": sorted(
            candidate.tasks.keys() - baseline.tasks.keys() - {*baseline.mixed}
        ),
        **different,
    }
    yield from ((reason, ids) for reason, ids in reasons.items() if reason and ids)


def why_different(old: Digests, new: Digests) -> str:
    """Why two trials of a task cannot be compared; "" if they can."""
    before, after = (set(one.conditions.split()) for one in (old, new))
    if names := sorted({part.partition("=")[0] for part in before ^ after}):
        return f"other conditions ({', '.join(names)})"
    return "" if old.scoring == new.scoring else "scored otherwise (answer, grader or metric)"


def compared_sets(
    tasks: Sequence[ComparedTask], margin: float, confidence: Confidence, drift: float
) -> list[SetComparison]:
    names = sorted({one.baseline.set for one in tasks})
    own = {name: [one for one in tasks if one.baseline.set == name] for name in names}
    found = {name: difference([one.pair for one in of_set], drift) for name, of_set in own.items()}
    levels = holm_levels(found, confidence)
    compared = []
    for name, of_set in own.items():
        own_level = confidence(name, 1)
        decided = verdict(found[name], margin, pass_level=own_level, level=levels[name])
        pairs = [one.pair for one in of_set]
        # For a single look that comes then, with the strictest level of several sets.
        strictest = by_one_look(name, len(own))
        more = epochs_to_decide(pairs, margin, strictest, drift) if decided == CANNOT_TELL else None
        compared.append(
            SetComparison(
                set=name,
                tasks=of_set,
                difference=found[name],
                level=own_level,
                verdict=decided,
                more_epochs=more,
            )
        )
    return compared


def holm_levels(found: Mapping[str, Difference], confidence: Confidence) -> dict[str, float]:
    """The confidence at which each set has regressed: several sets give no more false alarms than one.

    Holm 1979, Scandinavian Journal of Statistics 6, 65-70: after one that is not worse at its level, none is.
    """
    levels: dict[str, float] = {}
    ends = False
    for place, name in enumerate(sorted(found, key=lambda name: share_of_error(name, found, confidence))):
        level = confidence(name, len(found) - place)
        ends = ends or found[name].bounds(level)[1] >= 0
        levels[name] = 1.0 if ends else level
    return levels


def share_of_error(name: str, found: Mapping[str, Difference], confidence: Confidence) -> float:
    """The p-value of a set in the units of the error that it may have, which differs where looks do."""
    error = 1 - confidence(name, len(found))
    return chance_of_no_drop(found[name]) / error if error else inf


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    if REGRESSED in verdicts:
        return REGRESSED
    return PASS if all(one == PASS for one in verdicts) else CANNOT_TELL
