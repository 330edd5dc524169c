"""The process whose forks are the local sandboxes of a run, and where it is."""

import os
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from pytest_super.kernel.delivery import FIRST, INSIDE, MODULES, bridge_source
from pytest_super.kernel.providers.host_environment import allowed_environment
from pytest_super.kernel.providers.sandbox_folder import SandboxFolder
from pytest_super.platform import MARKER
from pytest_super.platform.forks.start import ForkServer

# Without a sandbox for this long, the process ends. Another one costs as much as an interpreter of its own.
IDLE_SECONDS = 1.0
# Another worker can be starting it.
LONGEST_START = 2.0
PREPARATION = f"""
exec(open({str(INSIDE / "warm.py")!r}).read())
prepare({str(INSIDE)!r}, {(*FIRST, *MODULES)!r})
"""
# The first line of a fork: what its starter uses in place of two functions.
BEGIN = "compile, start_kernel = __import__('sys').modules['warm'].begin()\n"


def socket_of(run: str) -> Path:
    """The socket of the run's process on this machine, which is started if there is none. Raises OSError."""
    folder = SandboxFolder(run)
    venv = f"{folder.path}/venv"
    socket = folder.path / "socket"
    with suppress(FileExistsError):
        folder.make()
        ForkServer(
            PREPARATION,
            folder=folder.path,
            python=f"{venv}/bin/python",
            environment={**allowed_environment(os.environ), "VIRTUAL_ENV": venv, MARKER: run},
            idle_seconds=IDLE_SECONDS,
        )
    deadline = monotonic() + LONGEST_START
    while not socket.exists() and monotonic() < deadline:
        sleep(0.01)
    if socket.stat().st_uid != os.getuid():
        raise ConnectionError(f"{socket} is another user's")
    return socket


def code() -> str:
    """What `bridge_source` is for a fork."""
    return BEGIN + bridge_source()
