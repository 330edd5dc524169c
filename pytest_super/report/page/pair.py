"""Two runs next to each other: the verdict, the tasks with what first differed, the trials of one task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING

from pytest_super.errors import SuperError
from pytest_super.gate.comparison.asked import AskedTrial, StoredRun, asked_trials
from pytest_super.gate.comparison.side import Side
from pytest_super.gate.statistics import require_scipy
from pytest_super.report.asked import Cause, causes_of, summary
from pytest_super.report.page.stored import GOING_ON, ShownRun, ShownTrial, readable_steps
from pytest_super.store.answers import AnswerStore
from pytest_super.store.json_lines import UNREADABLE, damage
from pytest_super.words import words_of

if TYPE_CHECKING:
    from markupsafe import Markup

    from pytest_super.gate.comparison.comparison import Comparison

# Of a request, before and now.
MOST_LINES = 40
# As `pytest-super compare` has it by default.
MARGIN = 0.10


@dataclass(frozen=True, kw_only=True)
class TaskPair:
    """One task in both runs: means of its headline metric, None in a run without a valid trial of it."""

    id: str
    set: str
    baseline: float | None
    candidate: float | None
    flip: str = ""
    """`lost` or `won`; "" if it did not flip or cannot be compared."""
    is_red: bool = False
    """Whether it is a loss in a set that has regressed."""
    asked: str = ""
    """What the candidate asked its model otherwise first; "" if nothing, or if that is not known."""

    @property
    def change(self) -> float | None:
        if self.baseline is None or self.candidate is None:
            return None
        return self.candidate - self.baseline


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What the page of two runs shows."""

    tasks: list[TaskPair]
    """Flips first."""
    verdict: str = ""
    """That on all sets; "" if the runs cannot be compared."""
    heads: Sequence[str] = ()
    sets: list[list[str]] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    asked: str = ""
    """How many trials asked their model the same; "" if that is not known."""
    causes: list[Cause] = field(default_factory=list)
    trouble: str = ""
    """Why the runs cannot be compared."""


@dataclass(frozen=True, kw_only=True)
class TaskSide:
    """The trials of one task in one run."""

    name: str
    others: list[tuple[str, ShownTrial]]
    """Address and trial of each."""
    body: Markup | None
    """The detail of the first one."""


@dataclass(frozen=True, kw_only=True)
class TaskAsked:
    """What the first trial of a task asked otherwise than the first one of the baseline."""

    trial: AskedTrial
    before: list[str]
    now: list[str]
    step: int
    """Of the candidate: the first one that begins after that call; 0 if none does."""


def pair_of(baseline: ShownRun, candidate: ShownRun) -> Pair:
    asked, trouble = asked_of(baseline, candidate)
    firsts = {one.id: f"call {one.call}, {one.difference}" for one in reversed(asked) if not one.is_equal}
    tasks = [replace(one, asked=firsts.get(one.id, "")) for one in tasks_of(baseline, candidate)]
    told = Pair(tasks=tasks, asked=summary(asked) if asked else "", causes=causes_of(asked), trouble=trouble)
    try:
        compared = comparison_of(baseline, candidate)
    except SuperError as error:
        trouble = "\n".join(filter(None, (words_of(error), trouble)))
        return replace(told, trouble=trouble)
    # They need scipy, which pages of one run do without.
    from pytest_super.gate.next_steps import compared_lines
    from pytest_super.report.comparison import HEADS, row_of

    return replace(
        told,
        tasks=list(flipped(tasks, compared)),
        verdict=str(compared.verdict),
        heads=HEADS,
        sets=[row_of(one) for one in compared.sets],
        verdicts=list(compared_lines(compared)),
    )


def asked_of(baseline: ShownRun, candidate: ShownRun) -> tuple[list[AskedTrial], str]:
    """What the trials of both runs asked, and what of that cannot be read."""
    ended = [one.result for one in candidate.trials if one.outcome != GOING_ON]
    try:
        return list(asked_trials(AnswerStore(baseline.folder), StoredRun(candidate.folder, ended))), ""
    except SuperError as error:
        return [], words_of(error)


def asked_in_task(baseline: ShownRun, candidate: ShownRun, id: str) -> TaskAsked | None:
    """Compare the candidate's first trial of a task; None if it asked the same, or that is not known."""
    first = trials_of(candidate, id)[:1]
    try:
        now = StoredRun(candidate.folder, [one.result for one in first])
        found = next(asked_trials(AnswerStore(baseline.folder), now), None)
    except SuperError:
        return None
    if found is None or found.difference is None:
        return None
    steps = readable_steps(candidate.folder, f"{first[0].folder}/trajectory.jsonl", [])
    later = [step.number for step in steps if found.at and step.started >= found.at]
    before, after = (lines[:MOST_LINES] for lines in (found.difference.before, found.difference.now))
    return TaskAsked(trial=found, before=before, now=after, step=min(later, default=0))


def comparison_of(baseline: ShownRun, candidate: ShownRun) -> Comparison:
    """Compare what can be read. Raises SuperError if nothing can be compared, or without scipy."""
    require_scipy()
    from pytest_super.gate.comparison.comparison import compare

    return compare(side_of_shown(baseline), side_of_shown(candidate), MARGIN)


def side_of_shown(run: ShownRun) -> Side:
    """Raises SuperError if a result has figures that no trial has."""
    from pytest_super.gate.comparison.side import side_of

    try:
        return side_of(run.name, {}, run.ended)
    except UNREADABLE as error:
        raise SuperError(f"the run {run.name} cannot be compared: {damage(error)}") from None


def flipped(tasks: Sequence[TaskPair], compared: Comparison) -> Iterator[TaskPair]:
    """The tasks with their flips, which come first."""
    regressed = {one.set for one in compared.sets if one.verdict == "regressed"}
    flips = {task.id: task.flip for task in compared.flips}
    for one in sorted(tasks, key=lambda one: flips.get(one.id, "z")):
        flip = flips.get(one.id, "")
        yield replace(one, flip=flip, is_red=flip == "lost" and one.set in regressed)


def tasks_of(baseline: ShownRun, candidate: ShownRun) -> list[TaskPair]:
    """The largest changes first."""
    means = [means_of(one) for one in (baseline, candidate)]
    sets = {one.result.id: one.result.set for run in (baseline, candidate) for one in run.trials}
    found = [
        TaskPair(id=id, set=name, baseline=means[0].get(id), candidate=means[1].get(id))
        for id, name in sets.items()
    ]
    return sorted(found, key=lambda one: (-abs(one.change or 0.0), one.id))


def means_of(run: ShownRun) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for one in run.trials:
        value = one.result.headline_value
        if one.outcome != GOING_ON and value is not None:
            values.setdefault(one.result.id, []).append(value)
    return {id: fmean(known) for id, known in values.items()}


def trials_of(run: ShownRun, id: str) -> list[ShownTrial]:
    """List the trials of a task by epoch."""
    return sorted((one for one in run.trials if one.result.id == id), key=lambda one: one.result.epoch)
