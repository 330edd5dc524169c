"""The notes on a comparison: what it is based on, what else can be the cause of a verdict, what to do."""

from collections import Counter
from collections.abc import Iterator
from math import sqrt

from pytest_super.gate.comparison import Comparison
from pytest_super.gate.errors import chance_of_more_errors
from pytest_super.gate.side import Side, summed
from pytest_super.gate.wording import decided_lines
from pytest_super.option_types import LEAST_EPOCHS, Epochs
from pytest_super.words import command_with, counted, named

# So many earlier runs are named.
MOST_RUNS = 3
# How rarely errors are said to be more frequent than they were, if they are not.
MORE_ERRORS = 0.05


def compared_lines(comparison: Comparison) -> Iterator[str]:
    """The verdict on each set, and the notes on it."""
    yield from decided_lines(comparison)
    yield from note_lines(comparison)


def note_lines(comparison: Comparison) -> Iterator[str]:
    """What the verdict is based on, what else can be its cause, and what to do."""
    if comparison.too_many_errors is not None:
        yield errors_again(comparison, comparison.too_many_errors)
        return
    yield from based_on(comparison)
    yield from doubt_lines(comparison)
    yield from next_lines(comparison)


def based_on(comparison: Comparison) -> Iterator[str]:
    """The tasks that were not run, the earlier trials that count, and how sure a later look is."""
    side = comparison.candidate
    for one in comparison.sets:
        if absent := one.not_run:
            share = 100 * absent[0].candidate.values[0]
            yield (
                f"{counted(len(absent), 'task')} of {one.set} that the baseline never solved were not run: "
                f"the verdict estimates that {share:.1f} % of their trials would be solved, a pass holds "
                "even if none were, and the run's figures are of the others alone"
            )
    if side.pooled:
        runs = [f"{counted(number, 'trial')} of run {run}" for run, number in side.pooled.items()]
        yield f"with {named(runs, MOST_RUNS)}, of the same subject"
    if side.looks:
        first, now = (100 * risk for risk in comparison.risks)
        look = f"look {side.looks + 1} at this subject"
        yield f"{look}, with {now:.3g} % risk of a wrong verdict instead of {first:.3g} %"
    if side.subjects:
        subject = f"subject {side.subjects + 1}"
        yield f"{subject} that this folder has compared with the baseline: each has a risk of its own"


def doubt_lines(comparison: Comparison) -> Iterator[str]:
    """What beside the candidate can be the cause of a verdict, if there is one."""
    errors = ", ".join(f"{100 * one.baseline_error:.1f} points in {one.set}" for one in comparison.sets)
    age = "" if (days := comparison.baseline_age) is None else f", and {counted(days, 'day')} old"
    yield f"the baseline itself is uncertain by {errors} (standard error, already counted){age}"
    before = summed(task.baseline.stops for task in comparison.ran)
    after = summed(task.candidate.stops for task in comparison.ran)
    if changed := list(changed_shares(before, after)):
        reasons = ", ".join(
            f"{reason} {100 * old:.0f} % -> {100 * new:.0f} %" for reason, old, new in changed
        )
        yield (
            f"trials end differently from the baseline's: {reasons}; before you trust the verdict, "
            f"look at some of them: pytest-super view {comparison.candidate.run}"
        )


def changed_shares(before: Counter[str], after: Counter[str]) -> Iterator[tuple[str, float, float]]:
    """Find shares that differ by 5 points or more, and by more than chance does in 99 % of comparisons."""
    sizes = before.total(), after.total()
    for reason in sorted(before | after) if all(sizes) else ():
        shares = before[reason] / sizes[0], after[reason] / sizes[1]
        whole = (before[reason] + after[reason]) / sum(sizes)
        deviation = sqrt(whole * (1 - whole) * (1 / sizes[0] + 1 / sizes[1]))
        if abs(shares[1] - shares[0]) >= max(0.05, 2.58 * deviation):
            yield reason, *shares


def next_lines(comparison: Comparison) -> Iterator[str]:
    """What to do about each set that is worse or has no verdict."""
    candidate, sets = comparison.candidate, comparison.sets
    if any(one.verdict != "cannot tell" and one.difference.bounds(one.level)[1] < 0 for one in sets):
        yield f"to see why: pytest-super why {candidate.run}, or pytest-super view {candidate.run}"
    if any(one.hidden is not None for one in sets):
        yield errors_again(comparison, candidate if candidate.errors else comparison.baseline)
    further = [(one.set, one.further) for one in sets if one.further is not None]
    for name, epochs in further:
        if not epochs:
            yield (
                f"{name}: more epochs would hardly decide: use more tasks, or another --super-max-regression"
            )
    if epochs := max((epochs for _, epochs in further), default=0):
        # Trials with recorded answers do not count again: further ones share the luck of their record.
        is_anew = bool(candidate.answers)
        again, count = ("run again with", "do not count") if is_anew else ("run", "count")
        # At least one look before the last.
        most = max(epochs + is_anew * candidate.epochs, LEAST_EPOCHS + 1)
        command = command_with(f"--super-epochs={Epochs(LEAST_EPOCHS, most)}", candidate.arguments)
        yield f"to find out, {again} more epochs, which {count} together with these: {command}"


def errors_again(comparison: Comparison, side: Side) -> str:
    before = comparison.baseline
    if side is before:
        return (
            f"to decide, run the errors of the baseline again (--super-resume={side.run} with its subject), "
            "and write it anew (`pytest-super baseline update`)"
        )
    old, new = sum(before.errors.values()), sum(side.errors.values())
    doubt = ""
    if chance_of_more_errors(new, side.trials, old, before.trials) < MORE_ERRORS:
        doubt = (
            f" (they are more frequent than the baseline's {old} of {before.trials}, "
            "so failing trials may be among them)"
        )
    return (
        "errors fail the run, unless --super-max-errors allows them; to decide, run them again, if this "
        f"agent is not their cause{doubt}: {command_with(f'--super-resume={side.run}', side.arguments)}"
    )
