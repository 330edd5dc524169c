"""A plugin for `pytest -p`: when the process that started the session ends, the session ends as by Ctrl-C."""

from __future__ import annotations

import os
import signal

import pytest

from pytest_super.platform import when_parent_ends
from pytest_super.session.run import is_worker


def pytest_configure(config: pytest.Config) -> None:
    # xdist loads this plugin in its workers too, but they end with the controller.
    if not is_worker(config):
        when_parent_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
