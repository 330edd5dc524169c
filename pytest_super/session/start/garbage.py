"""Spares a session searches for garbage in what lives until it ends."""

import atexit
import gc
from collections.abc import Generator

import pytest


class Garbage:
    """Python searches nothing until all tests are collected, and later skips what exists then.

    Its searches take a fifth of a session that only collects.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.was_enabled = gc.isenabled()
        gc.disable()
        # Called after pytest's search. A process can run several sessions, whose objects must not pile up.
        config.add_cleanup(gc.unfreeze)
        config.add_cleanup(self.resume)
        atexit.unregister(gc.freeze)
        atexit.register(gc.freeze)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Wraps the collection, also that of a controller whose workers collect."""
        result = yield
        gc.freeze()
        self.resume()
        return result

    def resume(self) -> None:
        if self.was_enabled:
            gc.enable()
