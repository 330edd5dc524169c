"""How processes end: after a signal they clean up first, an orphaned worker exits at once."""

import signal
import threading
from contextlib import suppress
from typing import Any

import pytest

from pytest_super.session.run import is_worker


class Interrupts:
    """Makes SIGTERM end a session as Ctrl-C does: trials are stored, sandboxes removed, a summary printed.

    A worker is also interrupted when its connection to the controller ends. Otherwise it would run on for
    5 s, half of the time after which the controller kills it.
    """

    def __init__(self) -> None:
        self.is_worker = False
        self.is_ending = False
        self.is_cut_off = False
        self.cause = "SIGTERM"
        self.previous: Any = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        # Python allows only the main thread to set handlers.
        if threading.current_thread() is not threading.main_thread():
            return
        self.previous = signal.signal(signal.SIGTERM, self.on_sigterm)
        self.is_worker = is_worker(session.config)
        if self.is_worker:
            signal.signal(signal.SIGINT, self.on_sigint)
            self.watch_connection(session.config)

    # First, because the other hooks are the clean-up that a signal must not cut short.
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """From here on a worker cleans up, and its connection ends as intended."""
        self.is_ending = is_worker(session.config)

    def pytest_unconfigure(self) -> None:
        """Restore the handler, except in a worker, which late signals would interrupt."""
        if self.previous is not None and not self.is_worker:
            signal.signal(signal.SIGTERM, self.previous)

    def on_sigint(self, number: int, frame: Any) -> None:
        """Ignore the SIGINT that execnet sends 5 s after the connection has ended, during the clean-up."""
        if self.is_ending and self.is_cut_off:
            return
        self.is_ending = True
        signal.default_int_handler(number, frame)

    def on_sigterm(self, _number: int, _frame: Any) -> None:
        """Interrupt the session, unless it is a worker that is ending: that would cut its teardown short."""
        if self.is_worker and self.is_ending:
            return
        self.is_ending = True
        raise KeyboardInterrupt(self.cause)

    def watch_connection(self, config: pytest.Config) -> None:
        """Watch the channel of xdist's plugin in a worker. Without one, execnet ends the worker later."""
        for plugin in config.pluginmanager.get_plugins():
            channel = getattr(plugin, "channel", None)
            if hasattr(channel, "waitclose"):
                threading.Thread(
                    target=self.interrupt_after, args=(channel,), daemon=True, name="super-connection"
                ).start()

    def interrupt_after(self, channel: Any) -> None:
        # It raises the error of which the other end died.
        with suppress(Exception):
            channel.waitclose()
        self.is_cut_off = True
        if not self.is_ending:
            self.cause = "the controller has ended"
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
