"""Why a program left no answer: the run has to stop if it could not start, and otherwise the report tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError, TrialEnded
from pytest_super.kernel.output import readable
from pytest_super.trial.program import NOT_FOUND, ProgramResult
from pytest_super.words import exit_words

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial

# What a shell exits with if it cannot execute a file, or cannot find it.
NOT_STARTED = (126, NOT_FOUND)
LONGEST_LINE = 200


@contextmanager
def preparing(trial: Trial) -> Iterator[None]:
    """The block does what a program needs before it starts: an exception is ours, and not the agent's."""
    try:
        yield
    except Exception as error:
        trial.failure = not_started(f"{type(error).__name__}: {error}")
        raise TrialEnded("error") from error


def not_started(why: str) -> InfrastructureError:
    return InfrastructureError(f"the agent's program was not started: {why}")


def explain_no_answer(trial: Trial, ran: ProgramResult, problem: str, *, has_acted: bool) -> None:
    """Put the end of the program into the trial's error, if it ended by itself.

    `problem` says why there is an answer file that cannot be used, if there is one. Raises
    InfrastructureError if the program could not be started, and a final one if its command was not found, or
    if it has asked its model only for what is not offered. It did start if it `has_acted` in the trial or
    has asked the model.
    """
    is_idle = not has_acted and not trial.budget.model_seconds
    if ran.not_started and is_idle:
        raise not_started(ran.not_started)
    if ran.exit_code is None:
        return
    last = readable(ran.result.outputs).strip().rpartition("\n")[2][:LONGEST_LINE]
    how = ": ".join(filter(None, (exit_words(ran.exit_code), last)))
    if ran.refused and is_idle:
        raise InfrastructureError(
            f"the agent's program cannot use the model: it asked for {ran.refused} {how}", is_final=True
        )
    if ran.exit_code in NOT_STARTED and is_idle:
        what = "check the command line of the agent, and whether its program is installed where it runs"
        raise InfrastructureError(f"the agent's program could not start: {how}: {what}", is_final=True)
    trial.error = f"{problem}; {how}" if problem else how
