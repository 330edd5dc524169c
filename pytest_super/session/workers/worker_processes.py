"""The processes of many workers: forks of one that has imported what they need.

Sixteen interpreters that import the same modules take seven seconds of processor time and 800 MiB. xdist
starts a program for each worker, as always: one that asks for a fork.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_super.agents.registry import is_program
from pytest_super.platform.forks.start import ForkServer, can_fork

if TYPE_CHECKING:
    import execnet

    from pytest_super.session.run import Run

CLIENT = Path(__file__).parents[2] / "platform/forks/client.py"
# Fewer start as fast by themselves.
FEWEST = 4
# What `-n` asks for.
PLAIN = "execmodel=main_thread_only//popen"
# What a worker imports, but no plugin of pytest: pytest rewrites their assertions when it imports them.
MODULES = (
    "execnet",
    "jupyter_client.session",
    "pdb",
    "pytest",
    "unittest",
    "xml.etree.ElementTree",
    "pytest_super.kernel.client",
    "pytest_super.metrics.script_runs.process_runs",
    "pytest_super.metrics.script_runs.trial_runs",
    "pytest_super.model.client",
    "pytest_super.model.gateway_process",
    "pytest_super.model.protocols.chat",
    "pytest_super.session.activation",
    "pytest_super.session.trial.kernels",
    "pytest_super.session.trial.models",
    "pytest_super.session.trial.ended_trial",
    "pytest_super.tasks.loading",
)

OF_PROGRAMS = ("pytest_super.trial.model_endpoint", "pytest_super.trial.program_steps")
OF_SANDBOXES = {
    "docker": ("docker", "pytest_super.kernel.providers.docker.sandbox"),
    "bubblewrap": ("pytest_super.kernel.providers.bubblewrap",),
    "local": ("pytest_super.kernel.providers.local",),
}


def are_many(config: pytest.Config) -> bool:
    """Whether `-n` asks for so many workers that forks are worth it, and they are possible here."""
    return (getattr(config.option, "numprocesses", None) or 0) >= FEWEST and can_fork()


class WorkerProcesses:
    """Starts the server at once, so that it is ready when xdist needs it."""

    def __init__(self, run: Run) -> None:
        modules = [*MODULES, *OF_SANDBOXES.get(run.sandbox or "", ())]
        if is_program(run.settings.agent):
            modules += OF_PROGRAMS
        folder = Path(tempfile.mkdtemp(prefix="super-"))
        self.server = ForkServer(f"import {', '.join(modules)}", folder=folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: list[execnet.XSpec]) -> None:
        python = shlex.join([sys.executable, "-IS", str(CLIENT), str(self.server.socket)])
        for spec in specs:
            if str(spec) == PLAIN:
                spec.python = python

    def pytest_unconfigure(self) -> None:
        self.server.close()
