"""Processes that end: a terminated one tidies up first, an orphaned worker goes at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CHECK_SECONDS = 0.5


def interrupt_on_sigterm() -> Callable[[], None]:
    """Make SIGTERM end the session as Ctrl-C does: trials stored, sandboxes removed, a summary printed.

    By itself it kills pytest without any teardown. Gives what undoes it.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    previous = signal.signal(signal.SIGTERM, raise_interrupt)

    def undo() -> None:
        signal.signal(signal.SIGTERM, previous)

    return undo


def raise_interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt("SIGTERM")


def die_with_parent() -> None:
    """End this process when its parent is gone: an xdist worker would go on for 15 s, with its sandboxes."""
    threading.Thread(target=watch_parent, args=(os.getppid(),), daemon=True, name="super-parent").start()


def watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECK_SECONDS)
    os._exit(1)
