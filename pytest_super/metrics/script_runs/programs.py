"""Steps that are programs inside the sandbox, which can run scripts without leaving a trace."""

from __future__ import annotations

from pytest_super.kernel.cell import Outcome
from pytest_super.store.trajectory import PROGRAM, Step


def may_hide_run(step: Step, min_seconds: float) -> bool:
    """Whether the step is a program of the agent that ran for at least `min_seconds` inside the sandbox.

    A refused program ran nothing.
    """
    has_run = step.origin == "agent" and step.action.type == PROGRAM and not is_refused(step)
    return has_run and step.seconds >= min_seconds


def is_refused(step: Step) -> bool:
    """Whether the step was refused because a cell was running: an error that took no time."""
    return step.outcome == Outcome.ERROR and not step.seconds
