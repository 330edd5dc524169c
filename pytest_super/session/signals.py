"""Processes that end: an interrupted one tidies up first, an orphaned worker goes at once."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.platform import when_parent_ends
from pytest_super.session.run import is_worker

if TYPE_CHECKING:
    from collections.abc import Callable


class Interrupts:
    """Makes SIGTERM end a session as Ctrl-C does: trials stored, sandboxes removed, a summary printed.

    By itself it kills pytest without any teardown. A worker is also interrupted when its connection to the
    controller ends, as it does when only the controller was sent a signal: by itself the worker would go on
    for 5 s, half of the time after which the controller kills it.
    """

    def __init__(self) -> None:
        self.is_worker = False
        self.is_ending = False
        self.is_cut_off = False
        self.cause = "SIGTERM"
        self.previous: dict[int, Any] = {}

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self.handle(signal.SIGTERM, self.on_sigterm)
        self.is_worker = is_worker(session.config)
        if self.is_worker:
            # A shell's background jobs are started with SIGINT ignored.
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self.handle(signal.SIGINT, self.on_sigint)
            self.watch_connection(session.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """From here on a worker tidies up, and its connection ends."""
        self.is_ending = is_worker(session.config)

    def pytest_unconfigure(self) -> None:
        """A worker's handlers stay: they keep what comes late from it."""
        if not self.is_worker:
            for number, handler in self.previous.items():
                signal.signal(number, handler)

    def handle(self, number: int, handler: Callable[[int, Any], None]) -> None:
        self.previous[number] = signal.signal(number, handler)

    def on_sigint(self, number: int, frame: Any) -> None:
        """execnet sends one 5 s after the connection has ended, into what tidies up."""
        if self.is_ending and self.is_cut_off:
            return
        self.is_ending = True
        signal.default_int_handler(number, frame)

    def on_sigterm(self, _number: int, _frame: Any) -> None:
        """In a worker it may come on top of what interrupted it: that would cut its teardown short."""
        if self.is_worker and self.is_ending:
            return
        self.is_ending = True
        raise KeyboardInterrupt(self.cause)

    def watch_connection(self, config: pytest.Config) -> None:
        """The channel is that of xdist's plugin in a worker; without it a worker ends in execnet's time."""
        plugins = config.pluginmanager.get_plugins()
        for channel in (getattr(plugin, "channel", None) for plugin in plugins):
            if hasattr(channel, "waitclose"):
                watch = threading.Thread(
                    target=self.end_with, args=(channel,), daemon=True, name="super-connection"
                )
                watch.start()

    def end_with(self, channel: Any) -> None:
        # It raises what the other end has died of.
        with suppress(Exception):
            channel.waitclose()
        self.is_cut_off = True
        if not self.is_ending:
            self.cause = "the controller has ended"
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def die_with_parent() -> None:
    """End this process when its parent is gone: an xdist worker would go on for 15 s, with its sandboxes."""
    when_parent_ends(lambda: os._exit(1))
