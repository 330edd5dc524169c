"""Runs an agent on its trial. Whatever the agent does, the trial ends with a stop reason."""

import asyncio
import inspect
import os
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from pytest_super.errors import TrialEnded
from pytest_super.trial.trial import Trial


class Agent(Protocol):
    """What chooses the actions."""

    def run(self, trial: Trial) -> Coroutine[Any, Any, None] | None:
        """Act by methods of `trial` until the task is done. Returning ends the trial. Can be `async def`."""


def run_agent(agent: Agent, trial: Trial, is_from_outside: Callable[[BaseException], bool]) -> str:
    """Let the agent act until the trial ends. Returns the stop reason.

    Raises the failure of the system around the agent, even if the agent caught it, and exceptions that
    `is_from_outside` accepts (an interrupt, a timeout). Every other exception is the agent's own, and
    the reason is `agent_error`. Threads and tasks that the agent leaves can no longer act or ask the model.
    """
    try:
        trial.wall_limit.run(lambda: act(agent, trial))
        trial.end("returned")
    except TrialEnded as ended:
        trial.end(ended.stop_reason)
    # Also SystemExit and the exceptions of pytest.skip: an agent ends only its own trial.
    except BaseException as error:
        if is_from_outside(error):
            trial.end("interrupted")
            raise
        trial.error = "".join(traceback.format_exception(error))
        trial.end("agent_error")
    finally:
        trial.close()
    if trial.failure is not None:
        raise trial.failure
    assert trial.stop_reason is not None
    return trial.stop_reason


def act(agent: Agent, trial: Trial) -> None:
    """Call the agent's `run`, and run it to its end if it is a coroutine."""
    process = os.getpid()
    try:
        running = agent.run(trial)
        if inspect.iscoroutine(running):
            asyncio.run(running)
        elif inspect.isgenerator(running) or inspect.isasyncgen(running):
            raise TypeError("the agent's method `run` has a `yield`, so calling it only makes a generator")
    finally:
        # A fork that the agent has let out of `run` would go on with the session and its results.
        if os.getpid() != process:
            os._exit(1)
