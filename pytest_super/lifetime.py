"""Processes that end: a terminated one tidies up first, an orphaned worker goes at once."""

from __future__ import annotations

import os
import signal
import threading
import time

CHECK_SECONDS = 0.5


def interrupt_on_sigterm() -> None:
    """Make SIGTERM end the session as Ctrl-C does: trials stored, sandboxes removed, a summary printed.

    By itself it kills pytest without any teardown.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, raise_interrupt)


def raise_interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt("SIGTERM")


def die_with_parent() -> None:
    """End this process when its parent is gone: an xdist worker would go on for 15 s, with its sandboxes."""
    threading.Thread(target=watch_parent, args=(os.getppid(),), daemon=True, name="super-parent").start()


def watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECK_SECONDS)
    os._exit(1)
