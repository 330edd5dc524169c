"""Why a program left no answer: the run has to stop if it could not start, and otherwise the report tells."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError, TrialEnded
from pytest_super.kernel.output import readable
from pytest_super.trial.program import NOT_FOUND, exit_note
from pytest_super.words import exit_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.trial.trial import Trial

# What a shell exits with if it cannot execute a file, or cannot find it.
NOT_STARTED = (126, NOT_FOUND)
LONGEST_LINE = 200
_EXIT_CODE = re.compile(r"exit code (\d+)|signal (\d+)")


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


def explain_no_answer(
    trial: Trial, code: int | None, outputs: list[dict[str, Any]], problem: str, *, has_acted: bool
) -> None:
    """Put the end of the program into the trial's error, if it exited, with `code`.

    `problem` says why there is an answer file that cannot be used, if there is one. Raises
    InfrastructureError if the program could not be started, and a final one if its command was not found, or
    if it has asked its model only for what is not offered. It did start if it `has_acted` in the trial or
    has asked the model.
    """
    is_idle = not has_acted and not trial.budget.model_seconds
    if trial.not_started and is_idle:
        raise not_started(trial.not_started)
    if code is None:
        return
    last = readable(outputs).strip().rpartition("\n")[2][:LONGEST_LINE]
    how = ": ".join(filter(None, (exit_words(code), last)))
    if trial.refused and is_idle:
        raise InfrastructureError(
            f"the agent's program cannot use the model: it asked for {trial.refused} {how}", is_final=True
        )
    if code in NOT_STARTED and is_idle:
        what = "check the command line of the agent, and whether its program is installed where it runs"
        raise InfrastructureError(f"the agent's program could not start: {how}: {what}", is_final=True)
    trial.error = f"{problem}; {how}" if problem else how


def exit_code_in(observation: str) -> int | None:
    """The exit code in the note at the end of a program's observation, the inverse of `exit_note`."""
    last = observation.rpartition("\n")[2]
    found = _EXIT_CODE.search(last)
    if found is None:
        return None
    code = int(found[1]) if found[1] else -int(found[2])
    return code if exit_note(code) == last else None
