"""What to do if a comparison cannot tell: the command line of more epochs, or a longer baseline."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_super.gate.comparison.side import Side
from pytest_super.gate.statistics.errors import chance_of_more_errors
from pytest_super.gate.wording import (
    BASELINE_AGAIN,
    CANNOT_TELL,
    LOOK,
    MAY_BE_FAILURES,
    RUN_ERRORS_AGAIN,
    RUN_MORE,
    RUN_MORE_ANEW,
    UNDECIDABLE,
    based_on,
    decided_lines,
    doubt_lines,
)
from pytest_super.option_types import LEAST_EPOCHS, Epochs

if TYPE_CHECKING:
    from pytest_super.gate.comparison.comparison import Comparison


# How rarely errors are said to be more frequent than they were, if they are not.
MORE_ERRORS = 0.05


def compared_lines(comparison: Comparison) -> Iterator[str]:
    """The verdict on each set, and the notes on it."""
    yield from decided_lines(comparison)
    yield from note_lines(comparison)


def note_lines(comparison: Comparison) -> Iterator[str]:
    """What the verdict is based on, what else can be its cause, and what to do."""
    if comparison.too_many_errors is None:
        yield from based_on(comparison)
        yield from doubt_lines(comparison)
    yield from next_lines(comparison)


def next_lines(comparison: Comparison) -> Iterator[str]:
    """What to do about each set that is worse or has no verdict."""
    if comparison.too_many_errors is not None:
        yield errors_again(comparison, comparison.too_many_errors)
        return
    if any(one.verdict != CANNOT_TELL and one.difference.bounds(one.level)[1] < 0 for one in comparison.sets):
        yield LOOK.format(run=comparison.candidate.run)
    if any(one.hidden is not None for one in comparison.sets):
        yield errors_again(
            comparison, comparison.candidate if comparison.candidate.errors else comparison.baseline
        )
    # Trials with recorded answers do not count again: further ones share the luck of their record.
    is_anew = bool(comparison.candidate.answers)
    further = [(one.set, one.further) for one in comparison.sets if one.further is not None]
    yield from (UNDECIDABLE.format(set=name) for name, epochs in further if not epochs)
    epochs = max((epochs for _, epochs in further), default=0)
    if epochs:
        # At least one look before the last.
        most = max(epochs + is_anew * comparison.candidate.epochs, LEAST_EPOCHS + 1)
        option = f"--super-epochs={Epochs(LEAST_EPOCHS, most)}"
        command = command_with(option, comparison.candidate.arguments)
        yield (RUN_MORE_ANEW if is_anew else RUN_MORE).format(command=command)


def errors_again(comparison: Comparison, side: Side) -> str:
    if side is comparison.baseline:
        return BASELINE_AGAIN.format(run=side.run)
    command = command_with(f"--super-resume={side.run}", side.arguments)
    before = comparison.baseline
    old, new = sum(before.errors.values()), sum(side.errors.values())
    is_more = chance_of_more_errors(new, side.trials, old, before.trials) < MORE_ERRORS
    doubt = MAY_BE_FAILURES.format(errors=old, trials=before.trials) if is_more else ""
    return RUN_ERRORS_AGAIN.format(command=command, doubt=doubt)


def command_with(option: str, arguments: Sequence[str]) -> str:
    """The command line with another value of an option; without a command line only the option.

    It resumes an earlier run only if that is the option.
    """
    if not arguments:
        return option
    kept = without(arguments, {option.partition("=")[0], "--super-resume"})
    # In front, because paths can follow after `--`.
    return shlex.join(["pytest", option, *kept])


def without(arguments: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """The arguments without these options and their values."""
    rest = iter(arguments)
    for one in rest:
        name, equals, _ = one.partition("=")
        if name not in names:
            yield one
        elif not equals:
            next(rest, None)
