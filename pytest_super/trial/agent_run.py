"""An agent let loose on its trial: whatever it does, the trial ends with a named reason."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
import traceback
from time import monotonic
from typing import TYPE_CHECKING, Any

from pytest_super.trial.trial import TrialEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import FrameType

    from pytest_super.trial.trial import Agent, Trial

# For what a coroutine has left to end itself.
LEFT_SECONDS = 1.0
# After the limit of wall time: how long an agent may tidy up, and how long an action may take to see the
# limit by itself; one that ends a program beside the trial takes longest.
TIDY_SECONDS = 3.0
ACTION_SECONDS = 20.0
# An interrupt is a person's, who waits.
INTERRUPTED_SECONDS = 2.0
LOOK_SECONDS = 0.05
# A loop without anything to do would not notice what is raised in its thread.
TURN_SECONDS = 0.2
LONGEST_WAIT = 3600.0


class Stopped(TrialEnded):
    """Raised in an agent's thread, wherever that is."""

    def __init__(self) -> None:
        super().__init__("wall")


def run_agent(agent: Agent, trial: Trial, is_from_outside: Callable[[BaseException], bool]) -> str:
    """Let the agent act until the trial ends; returns the stop reason.

    Raises what failed under the trial, whatever the agent made of it, and what `is_from_outside` (an
    interrupt, a time-out). All else that comes out of an agent is its own: `agent_error`. What of the agent
    lives on, threads say, can neither act nor ask any more. With a limit of wall time the agent has a thread
    of its own, which is left behind when it does not end.
    """
    try:
        if trial.budget.limits.wall is None:
            act(agent, trial)
        else:
            AgentThread(agent, trial).run()
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


def act(agent: Agent, trial: Trial) -> None:
    running = agent.run(trial)
    if inspect.iscoroutine(running):
        run_coroutine(running)
    elif inspect.isgenerator(running) or inspect.isasyncgen(running):
        raise TypeError("the agent's method `run` is a generator, which does nothing: it has a `yield`")


def run_coroutine(coroutine: Coroutine[Any, Any, None]) -> None:
    """As asyncio.run does, but without waiting for threads that the agent has left behind."""
    loop = asyncio.new_event_loop()
    try:
        keep_turning(loop)
        loop.run_until_complete(coroutine)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=LEFT_SECONDS))
        loop.close()


def keep_turning(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_later(TURN_SECONDS, keep_turning, loop)


class AgentThread:
    """An agent that can be left: nothing else ends one that swallows what is raised in it, or hangs in C."""

    def __init__(self, agent: Agent, trial: Trial) -> None:
        self._agent = agent
        self._trial = trial
        self._error: BaseException | None = None
        context = contextvars.copy_context()
        # A daemon, as are then the threads that it starts: the end of pytest does not wait for them.
        self._thread = threading.Thread(
            target=context.run, args=(self._act,), daemon=True, name=f"agent of {trial.task.id}"
        )

    def run(self) -> None:
        """Let the agent act until it ends, or does not although its wall time is over.

        Raises what it raised, and what comes from outside meanwhile.
        """
        self._thread.start()
        try:
            self._await()
        except BaseException:
            self._trial.end("interrupted")
            self._raise_there()
            self._thread.join(INTERRUPTED_SECONDS)
            raise
        if self._error is not None:
            raise self._error

    def _act(self) -> None:
        try:
            act(self._agent, self._trial)
        except BaseException as error:
            self._error = error

    def _await(self) -> None:
        while self._thread.is_alive() and (left := self._trial.budget.wall_left()) > 0:
            self._thread.join(min(left, LONGEST_WAIT))
        if self._thread.is_alive():
            self._trial.end("wall")
            self._stop()

    def _stop(self) -> None:
        """An action sees the limit by itself and raises; it is not broken off, lest its step be lost."""
        over = monotonic()
        own_since = None if self._is_in_action() else over
        if own_since is not None:
            self._raise_there()
        while self._thread.is_alive() and monotonic() - over < ACTION_SECONDS:
            own_since = None if self._is_in_action() else own_since or monotonic()
            if own_since is not None and monotonic() - own_since > TIDY_SECONDS:
                return
            self._thread.join(LOOK_SECONDS)

    def _raise_there(self) -> None:
        import ctypes

        ident = self._thread.ident
        if ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(Stopped))

    def _is_in_action(self) -> bool:
        """Whether one of the agent's threads is in a method of the trial."""
        return any(is_in(self._trial, frame) for frame in sys._current_frames().values())


def is_in(trial: Trial, innermost: FrameType) -> bool:
    frame: FrameType | None = innermost
    while frame is not None:
        if frame.f_globals.get("__name__") == TrialEnded.__module__ and frame.f_locals.get("self") is trial:
            return True
        frame = frame.f_back
    return False
