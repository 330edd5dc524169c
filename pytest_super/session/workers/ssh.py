"""Workers on machines that ssh reaches."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import execnet

# A machine that does not answer is given up after 15 s, or after 45 s once it has a worker. After Ctrl-C in a
# terminal, the workers still have to end in order.
SSH = (
    *("sh", "-c", 'trap "" INT; exec "$@"', "sh", "ssh"),
    *("-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15"),
)
# What execnet gives to Python. ssh gives it unquoted to a shell, so we quote it, and end in a comment sign.
BOOTSTRAP = "import sys;exec(eval(sys.stdin.readline()))"


class SshWorkers:
    """Registered on the controller. A worker that dies is replaced on a machine that answers."""

    def __init__(self, machines: Sequence[str]) -> None:
        self.machines = machines
        self.commands = {python_on(machine, BOOTSTRAP): machine for machine in machines}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: list[execnet.XSpec]) -> None:
        """Raises pytest.UsageError for a machine that cannot have a worker."""
        for machine in self.commands.values():
            if why := why_not(machine):
                raise pytest.UsageError(
                    f"--super-machines: {machine} cannot have workers ({why}): `ssh {machine}` must work "
                    f"without a question, and {sys.executable} and {os.getcwd()} must be there"
                )
        for spec, machine in zip(specs, self.machines, strict=True):
            spec.python = python_on(machine, BOOTSTRAP)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        if error is not None:
            spec = node.gateway.spec
            own_first = sorted(self.commands, key=lambda command: command != spec.python)
            # Without one, on this machine.
            spec.python = next((one for one in own_first if not why_not(self.commands[one])), None)


def python_on(machine: str, code: str) -> str:
    """The command that runs Python code there, in this folder."""
    python = shlex.join([sys.executable, "-u", "-c", code])
    return shlex.join([*SSH, machine, f"cd {shlex.quote(os.getcwd())} && exec {python} #"])


def why_not(machine: str) -> str:
    """Why Python cannot be run there; "" if it can."""
    ended = subprocess.run(
        shlex.split(python_on(machine, "pass")), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    return (ended.stderr.strip() or f"exit code {ended.returncode}") if ended.returncode else ""
