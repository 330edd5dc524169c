"""Lets searches for garbage skip what lives until the session ends."""

from __future__ import annotations

import atexit
import gc
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


class Garbage:
    """Pytest searches at its end, and Python after it: a sixth of a session that only collects."""

    def __init__(self, config: pytest.Config) -> None:
        # Called after pytest's search. A process can run several sessions, whose objects must not pile up.
        config.add_cleanup(gc.unfreeze)
        atexit.unregister(gc.freeze)
        atexit.register(gc.freeze)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Wraps the collection, also that of a controller whose workers collect."""
        result = yield
        gc.freeze()
        return result
