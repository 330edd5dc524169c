"""The wording of verdicts: the words of gates, and every sentence about what they have decided and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import TYPE_CHECKING

from pytest_super.gate.comparison.endings import changed_stops
from pytest_super.gate.statistics.errors import MAX_ERRORS
from pytest_super.words import counted, named

if TYPE_CHECKING:
    from pytest_super.gate.comparison.comparison import Comparison, SetComparison
    from pytest_super.gate.statistics import decision

PASSED, FAILED, OPEN, CANNOT_TELL = "passed", "FAILED", "open", "cannot tell"
# One of several gates decides for all of them: the first of these that one of them has.
WORST_FIRST = (FAILED, OPEN, CANNOT_TELL, PASSED)
GATE = "gate: "
# So many earlier runs are named.
MOST_RUNS = 3
INVALID = "invalid: "

TOO_MANY_ERRORS = (
    "{errors} of {trials} trials are infrastructure errors, more than {limit:.3g} %, so the run fails: "
    "run them again (--super-resume=latest)"
)
FIGURES_INVALID = "too many trials are infrastructure errors"
NOT_ALL_ENDED = "not all trials have ended"

# --super-fail-under
BOUNDED = "mean {figure} {value:.4f} is {relation} {bound:g}"
HIGHER_IS_BETTER = {PASSED: "at least", FAILED: "under"}
LOWER_IS_BETTER = {PASSED: "below", FAILED: "not below"}
NO_VALUE = "no trial has a value of {figure}"
NO_SUCH_TASK = "no selected task has {figure}"
NO_MEAN_YET = "the run has no mean {figure} of all trials"

# --super-must-solve
ALL_SOLVED = "the tasks of {file} are solved"
TOO_RARELY_SOLVED = "of {file} too rarely solved: {tasks}"
SOLVED_IN = "{task} in {solved} of {trials}"
NOT_ALL_ENDED_OF = "not all trials have ended that {file} needs"

# --super-baseline
VERDICTS: Mapping[decision.Verdict, str] = {
    "pass": "PASS",
    "cannot tell": "CANNOT TELL",
    "regressed": "REGRESSED",
}
"""In this order, because the last line is read first."""
OF_SET = "{verdict}  {set} {points} points ({low} to {high}), limit -{margin:g}"
ANCHORED = "{line} (anchor {anchor})"
MORE = "; about {epochs} needed"
NO_COLLAPSE = "NO COLLAPSE  {set}: {tasks} can show no more (a pass needs about {needed})"
HIDDEN = "; {verdict} if the trials with infrastructure errors are left out"
TOO_FEW_EPOCHS = "TOO FEW EPOCHS  {set}: {drop} can be found, not one of {margin:g}; {needed} would be enough"
TOO_FEW_TASKS = (
    "TOO FEW TASKS  {set}: {drop} can be found, not one of {margin:g} by any number of epochs: "
    "use more tasks, a baseline with more epochs, or a larger --super-max-regression"
)
NOTHING_COMPARED = "nothing can be compared"
SIDE_WITH_ERRORS = "{errors} of {trials} trials of {name} are infrastructure errors, more than {limit:.3g} %"
POOLED = "with {runs}, of the same subject"
NOT_RUN = (
    "{tasks} of {set} that the baseline never solved were not run: the verdict estimates that "
    "{share:.1f} % of their trials would be solved, a pass holds even if none were, and the run's "
    "figures are of the others alone"
)
SAME = "PASS  {set}: all {trials} got the baseline's answers throughout and ended as its trials did"
LATER_LOOK = "look {look} at this subject, with {risk:.3g} % risk of a wrong verdict instead of {first:.3g} %"
SUBJECTS = "subject {number} that this folder has compared with the baseline: each has a risk of its own"
LUCK = "the baseline itself is uncertain by {errors} (standard error, already counted){age}"
# From so many points on, tenths tell nothing.
LARGE = 10
STOPS = (
    "trials end differently from the baseline's: {reasons}; before you trust the verdict, "
    "look at some of them: pytest-super view {run}"
)
# What to do
LOOK = "to see why: pytest-super why {run}, or pytest-super view {run}"
GOES_ON = "CANNOT TELL does not fail the run: see --super-cannot-tell"
RUN_ERRORS_AGAIN = (
    "errors fail the run, unless --super-max-errors allows them; "
    "to decide, run them again, if this agent is not their cause{doubt}: {command}"
)
MAY_BE_FAILURES = (
    " (they are more frequent than the baseline's {errors} of {trials}, so failing trials may be among them)"
)
BASELINE_AGAIN = (
    "to decide, run the errors of the baseline again (--super-resume={run} with its subject), "
    "and write it anew (`pytest-super baseline update`)"
)
RUN_MORE = "to find out, run more epochs, which count together with these: {command}"
RUN_MORE_ANEW = "to find out, run again with more epochs, which do not count together with these: {command}"
UNDECIDABLE = (
    "{set}: not even 100 more epochs would decide: use more tasks, or another --super-max-regression"
)

# The end of an adaptive run
NOT_NEEDED = "not needed: the gates were decided after {epochs}"
SAVED = "decided after {epochs}: {left} of {trials} were not needed{cost}"
SAVED_COST = ", about ${cost:.4f}"


def of_set(one: SetComparison, margin: float) -> str:
    if one.is_same:
        trials = sum(len(task.candidate.values) for task in one.ran)
        return SAME.format(set=one.set, trials=counted(trials, "trial"))
    if one.difference.is_small and one.verdict == "cannot tell":
        # Twenty tasks often rule out a drop of ten points.
        needed = ceil(20 * (0.1 / margin) ** 2)
        return NO_COLLAPSE.format(set=one.set, tasks=counted(len(one.tasks), "task"), needed=needed)
    low, high = map(points_of, one.difference.bounds(one.level))
    words, points = VERDICTS[one.verdict], points_of(one.difference.value)
    line = OF_SET.format(verdict=words, set=one.set, points=points, low=low, high=high, margin=100 * margin)
    if one.hidden is not None:
        line += HIDDEN.format(verdict=VERDICTS[one.hidden])
    elif one.further:
        line += MORE.format(epochs=counted(one.further, "more epoch"))
    return line


def points_of(difference: float) -> str:
    """As few digits as tell something."""
    points = 100 * difference
    return f"{points:+.0f}" if abs(points) >= LARGE else f"{points:+.1f}"


def why_undecided(comparison: Comparison) -> str:
    """Why a comparison decides nothing, whatever its sets say; "" if it decides."""
    side = comparison.too_many_errors
    if side is None:
        return ""
    return SIDE_WITH_ERRORS.format(
        errors=sum(side.errors.values()), trials=side.trials, name=side.name, limit=100 * MAX_ERRORS
    )


def decided_lines(comparison: Comparison) -> Iterator[str]:
    """A line for the verdict on each set, the worst last; or only why nothing is decided."""
    if why := why_undecided(comparison):
        yield f"{VERDICTS['cannot tell']}  {why}"
        return
    for words in VERDICTS:
        yield from (of_set(one, comparison.margin) for one in comparison.sets if one.verdict == words)


def doubt_lines(comparison: Comparison) -> Iterator[str]:
    """What beside the candidate can be the cause of a verdict, if there is one."""
    errors = ", ".join(f"{100 * one.baseline_error:.1f} points in {one.set}" for one in comparison.sets)
    age = comparison.baseline_age
    yield LUCK.format(errors=errors, age="" if age is None else f", and {counted(age, 'day')} old")
    if changed := changed_stops(comparison):
        reasons = (f"{reason} {100 * old:.0f} % -> {100 * new:.0f} %" for reason, old, new in changed)
        yield STOPS.format(reasons=", ".join(reasons), run=comparison.candidate.run)


def based_on(comparison: Comparison) -> Iterator[str]:
    """The tasks that were not run, the earlier trials that count, and how sure a later look is."""
    side = comparison.candidate
    for one in comparison.sets:
        if absent := one.not_run:
            tasks, share = counted(len(absent), "task"), 100 * absent[0].candidate.values[0]
            yield NOT_RUN.format(tasks=tasks, set=one.set, share=share)
    if side.pooled:
        runs = [f"{counted(number, 'trial')} of run {run}" for run, number in side.pooled.items()]
        yield POOLED.format(runs=named(runs, MOST_RUNS))
    if side.looks:
        first, now = (100 * risk for risk in comparison.risks)
        yield LATER_LOOK.format(look=side.looks + 1, risk=now, first=first)
    if side.subjects:
        yield SUBJECTS.format(number=side.subjects + 1)
