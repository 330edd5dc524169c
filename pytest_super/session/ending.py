"""How a trial has ended that did not end by itself: an interrupt, a timeout, a failure around the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_super.errors import InfrastructureError
from pytest_super.model.completion import RunCostError
from pytest_super.store.results import RUN_COST
from pytest_super.words import words_of

if TYPE_CHECKING:
    from pytest_super.store.activity import Doing


def is_timeout(error: BaseException) -> bool:
    """Whether pytest-timeout raised the error: its signal method fails the test with this message."""
    return isinstance(error, pytest.fail.Exception) and str(error).startswith("Timeout")


def is_from_outside(error: BaseException) -> bool:
    """Whether the error is an interrupt or a timeout, which end more than the agent's code."""
    return isinstance(error, KeyboardInterrupt) or is_timeout(error)


def failure(error: BaseException) -> Exception:
    """The error of a hook that raised after the trial; `pytest.fail` and `pytest.skip` are errors there."""
    return error if isinstance(error, Exception) else InfrastructureError(words_of(error))


def error_of(cause: BaseException | None, doing: Doing) -> str | None:
    """Why the trial is not valid; None if it is. `doing` is what the cause ended."""
    if cause is None:
        return None
    if isinstance(cause, KeyboardInterrupt):
        return f"interrupted: {str(cause) or 'Ctrl-C'}, at {doing}"
    words = words_of(cause)
    return words if isinstance(cause, Exception) else f"interrupted: {words}"


def stop_reason_of(cause: BaseException | None) -> str:
    """The stop reason of a failure; "" if nothing failed."""
    if isinstance(cause, RunCostError):
        return RUN_COST
    return "error" if isinstance(cause, Exception) else ""
