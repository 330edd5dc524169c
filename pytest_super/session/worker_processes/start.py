"""Lets xdist start its workers as forks."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import execnet

CLIENT = Path(__file__).with_name("client.py")
# Fewer start as fast by themselves.
FEWEST = 4
# What `-n` asks for.
PLAIN = "execmodel=main_thread_only//popen"


def can_fork(config: pytest.Config) -> bool:
    """Whether `-n` asks for many workers, on Linux."""
    workers = getattr(config.option, "numprocesses", None) or 0
    return workers >= FEWEST and sys.platform == "linux"


class WorkerProcesses:
    """Starts the server at once, so that it is ready when xdist needs it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="super-"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / "socket"))
            listener.listen(1024)
            command = [sys.executable, "-m", "pytest_super.session.worker_processes.server"]
            self.server = subprocess.Popen(
                [*command, str(listener.fileno())], stdin=subprocess.PIPE, pass_fds=[listener.fileno()]
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: list[execnet.XSpec]) -> None:
        import execnet

        python = shlex.join([sys.executable, "-IS", str(CLIENT), str(self.folder / "socket")])
        for place, spec in enumerate(specs):
            if str(spec) == PLAIN:
                specs[place] = execnet.XSpec(f"{PLAIN}//python={python}")

    def pytest_unconfigure(self) -> None:
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
