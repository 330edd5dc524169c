"""A plugin for `pytest -p`: the session ends as at Ctrl-C when the process that started it has ended."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from pytest_super.platform import when_parent_ends
from pytest_super.session.run import is_worker

if TYPE_CHECKING:
    import pytest


def pytest_configure(config: pytest.Config) -> None:
    # xdist hands its workers this plugin, too: those end with the controller.
    if not is_worker(config):
        when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
