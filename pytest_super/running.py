"""An agent let loose on its trial: whatever it does, the trial ends with a named reason."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from typing import TYPE_CHECKING, Any

from pytest_super.trial import TrialEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pytest_super.trial import Agent, Trial

# For what a coroutine has left to end itself.
LEFT_SECONDS = 1.0


def run_agent(agent: Agent, trial: Trial, is_from_outside: Callable[[BaseException], bool]) -> str:
    """Let the agent act until the trial ends; returns the stop reason.

    Raises what failed under the trial, whatever the agent made of it, and what `is_from_outside` (an
    interrupt, a time-out). All else that comes out of an agent is its own: `agent_error`. What of the agent
    lives on, threads say, can neither act nor ask any more.
    """
    try:
        running = agent.run(trial)
        if inspect.iscoroutine(running):
            run_coroutine(running)
        elif inspect.isgenerator(running) or inspect.isasyncgen(running):
            raise TypeError("the agent's method `run` is a generator, which does nothing: it has a `yield`")
        trial.end("returned")
    except TrialEnded as ended:
        trial.end(ended.stop_reason)
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


def run_coroutine(coroutine: Coroutine[Any, Any, None]) -> None:
    """As asyncio.run does, but without waiting for threads that the agent has left behind."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(coroutine)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LEFT_SECONDS))
        loop.close()
