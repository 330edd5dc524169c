"""Workers on other machines: `--super-machines` in the options of xdist."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_super.session.workers.slurm import SlurmWorkers
from pytest_super.session.workers.ssh import SshWorkers


def use_machines(config: pytest.Config, machines: Sequence[str], words: Sequence[str]) -> None:
    """Have xdist start a worker on each of the machines. `words` are options of Slurm's jobs.

    Raises pytest.UsageError.
    """
    if config.getoption("tx", None) or config.getoption("numprocesses", None):
        raise pytest.UsageError("--super-machines starts the workers: leave out -n and --tx")
    if not config.pluginmanager.hasplugin("xdist"):
        raise pytest.UsageError("--super-machines needs pytest-xdist, which is disabled")
    workers = SlurmWorkers(words) if machines[0] == "slurm" else SshWorkers(machines)
    config.option.tx = ["popen"] * len(machines)
    if config.option.dist == "no":
        config.option.dist = "load"
    config.pluginmanager.register(workers, "super-machines")
