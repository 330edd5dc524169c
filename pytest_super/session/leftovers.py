"""Threads that agents leave running: the end of pytest does not wait for them.

The interpreter waits for every thread that is no daemon, and for those of executors, before its exit handlers
run. Nothing public takes a thread out of that, and `os._exit` would skip the handlers of everybody else; an
exception in the main thread, as by Ctrl-C, ends the waiting alone.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

LEFT = pytest.StashKey[set[threading.Thread]]()
# Ignored unless somebody handles it, so that one that comes late harms nobody.
SIGNAL = signal.SIGURG
LOOK_SECONDS = 0.2
# For threads that end by themselves when the interpreter does, as those of idle executors.
PATIENCE_SECONDS = 1.0


class Dismissed(BaseException):
    """Raised in the main thread while it waits for threads at the interpreter's end."""


@contextmanager
def threads_noted(config: pytest.Config) -> Iterator[None]:
    """What is started in here and goes on is not waited for when the session is over and the process ends."""
    before = set(threading.enumerate())
    try:
        yield
    finally:
        if LEFT not in config.stash:
            config.stash[LEFT] = set()
            config.add_cleanup(lambda: dismiss(config.stash[LEFT]))
        started = set(threading.enumerate()) - before
        config.stash[LEFT] = living(config.stash[LEFT] | started)


def living(threads: set[threading.Thread]) -> set[threading.Thread]:
    return {thread for thread in threads if thread.is_alive()}


def dismiss(left: set[threading.Thread]) -> None:
    """Let the interpreter end without waiting for these threads. In the main thread, else without effect."""
    if not living(left) or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(SIGNAL) is signal.SIG_DFL:
        signal.signal(SIGNAL, end_waiting)
        threading.Thread(target=watch_end, args=(left,), daemon=True, name="super-end").start()


def end_waiting(_number: int, frame: FrameType | None) -> None:
    if is_waiting(frame):
        raise Dismissed


def is_waiting(frame: FrameType | None) -> bool:
    """Whether this is the main thread at the interpreter's end, waiting for others."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "threading" and frame.f_code.co_name == "_shutdown":
            return True
        frame = frame.f_back
    return False


def watch_end(left: set[threading.Thread]) -> None:
    """Break the interpreter's end off from waiting when it waits for nobody but these."""
    main = threading.main_thread().ident
    assert main is not None
    waits_since: float | None = None
    while living(left):
        time.sleep(LOOK_SECONDS)
        if not is_waiting(sys._current_frames().get(main)) or others(left):
            waits_since = None
            continue
        waits_since = waits_since or time.monotonic()
        if time.monotonic() - waits_since > PATIENCE_SECONDS:
            tell_of(left)
            signal.pthread_kill(main, SIGNAL)
            return


def others(left: set[threading.Thread]) -> bool:
    """Whether threads live for which a process is to wait: those of the project itself."""
    main = threading.main_thread()
    return any(
        not thread.daemon and thread is not main and thread not in left for thread in threading.enumerate()
    )


def tell_of(left: set[threading.Thread]) -> None:
    names = ", ".join(sorted(thread.name for thread in living(left) if holds(thread)))
    print(f"pytest-super: not waited for, though agents left them running: {names}", file=sys.stderr)
    usual = sys.unraisablehook

    def without_ours(unraisable: Any) -> None:
        if unraisable.exc_type is not Dismissed:
            usual(unraisable)

    sys.unraisablehook = without_ours


def holds(thread: threading.Thread) -> bool:
    """Whether the interpreter waits for it: not for daemons, but for workers of executors all the same."""
    assert thread.ident is not None
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_globals.get("__name__") == "concurrent.futures.thread":
            return True
        frame = frame.f_back
    return not thread.daemon
