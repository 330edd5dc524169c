"""The wall limit of an agent that is busy in its own code: a signal interrupts the main thread.

Actions check the limit themselves. An interrupted action would lose its step, so the signal takes effect only
when the action ends. It is sent again, because an agent can swallow the end of its trial. If no signal can be
used, the limit takes effect at the agent's next action.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from pytest_super.model.completion import Model

# Ignored by default, so a late signal does no harm. Go uses SIGURG for its threads for the same reason.
# Not SIGALRM, because pytest-timeout uses it.
SIGNAL = signal.SIGURG if hasattr(signal, "pthread_kill") else None
# After this time the signal is sent again. Until then the agent can save its results.
AGAIN_SECONDS = 120.0

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Depth(threading.local):
    """The depth of nested `put_off` blocks in the current thread."""

    value = 0


class WallLimit:
    """Ends a trial in the main thread, at the limit or at the end of the action that runs then."""

    def __init__(self, seconds_left: Callable[[], float], end_trial: Callable[[], None]) -> None:
        """`end_trial` raises; it can be called more than once."""
        self._seconds_left = seconds_left
        self._end_trial = end_trial
        self._depth = Depth()
        self._is_reached = False
        self._is_over = threading.Event()

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """The signal does not interrupt this block. It takes effect at the end of the block."""
        self._depth.value += 1
        try:
            yield
        finally:
            self._depth.value -= 1
        if self._is_reached and not self._depth.value:
            self._end_trial()

    def during_call(self, model: Model | None) -> AbstractContextManager[None]:
        """Put the limit off in a call of the model: an interrupt would leave its connection open."""
        return self.put_off() if getattr(model, "ends_at_wall_limit", False) else nullcontext()

    def run(self, act: Callable[[], None]) -> None:
        """Call `act`, and end the trial in it at the limit. Raises what `act` or `end_trial` raises."""
        if SIGNAL is None or threading.current_thread() is not threading.main_thread():
            act()
            return
        timer = threading.Thread(target=self._signal_at_limit, daemon=True, name="super-wall-limit")
        previous = signal.signal(SIGNAL, lambda _number, _frame: self._reach())
        try:
            timer.start()
            act()
        finally:
            # Not a context manager, because the signal could arrive before its `__exit__` has begun. Here it
            # can arrive until the first `set` is done. The next one comes much later.
            try:
                self._is_over.set()
            finally:
                self._is_over.set()
                timer.join()
                signal.signal(SIGNAL, previous)

    def _signal_at_limit(self) -> None:
        while (left := self._seconds_left()) > 0:
            if self._is_over.wait(min(left, threading.TIMEOUT_MAX)):
                return
        assert SIGNAL is not None
        while True:
            signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)
            if self._is_over.wait(AGAIN_SECONDS):
                return

    def _reach(self) -> None:
        if self._is_over.is_set():
            return
        self._is_reached = True
        if not self._depth.value:
            self._end_trial()


class HasWallLimit(Protocol):
    wall_limit: WallLimit


Limited = TypeVar("Limited", bound=HasWallLimit)


def whole_step(
    method: Callable[Concatenate[Limited, Arguments], Result],
) -> Callable[Concatenate[Limited, Arguments], Result]:
    """Marks an action: the signal at the wall limit does not interrupt it, so that its step is written."""

    @wraps(method)
    def uninterrupted(trial: Limited, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with trial.wall_limit.put_off():
            return method(trial, *arguments, **named)

    return uninterrupted
