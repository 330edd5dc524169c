"""Workers on other machines: `--super-machines` in the options of xdist, for a Slurm cluster or for ssh."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import execnet

# After so many seconds without a further node the run begins with those that it has. Slurm looks for room for
# waiting jobs every half minute or minute.
PATIENCE = 60.0
# Without --unbuffered, `srun` holds back the workers' messages, and the run hangs.
WORKER = ("--unbuffered", "--exact", "--nodes=1", "--ntasks=1")
# A machine that does not answer is given up after 15 s, or after 45 s once it has a worker. After Ctrl-C in a
# terminal, the workers still have to end in order.
SSH = (
    *("sh", "-c", 'trap "" INT; exec "$@"', "sh", "ssh"),
    *("-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15"),
)
# What execnet gives to Python. ssh gives it unquoted to a shell, so we quote it, and end in a comment sign.
BOOTSTRAP = "import sys;exec(eval(sys.stdin.readline()))"


def use_machines(config: pytest.Config, machines: Sequence[str], words: Sequence[str]) -> None:
    """Have xdist start a worker on each machine; `words` are for Slurm's jobs. Raises pytest.UsageError."""
    if config.getoption("tx", None) or config.getoption("numprocesses", None):
        raise pytest.UsageError("--super-machines starts the workers: leave out -n and --tx")
    if not config.pluginmanager.hasplugin("xdist"):
        raise pytest.UsageError("--super-machines needs pytest-xdist, which is disabled")
    workers = SlurmWorkers(words) if machines[0] == "slurm" else SshWorkers(machines)
    config.option.tx = ["popen"] * len(machines)
    if config.option.dist == "no":
        config.option.dist = "load"
    config.pluginmanager.register(workers, "super-machines")


def command(words: Sequence[str]) -> str:
    return shlex.join(["srun", *WORKER, *words, sys.executable])


class Job:
    """A job with one task. `salloc` asks for it, and ends it when our end of its input is closed."""

    def __init__(self, words: Sequence[str]) -> None:
        hold = ["sh", "-c", "echo $SLURM_JOB_ID && exec cat"]
        # In a session of its own: after Ctrl-C in a terminal, the workers still have to end in order.
        self.process = subprocess.Popen(
            ["salloc", "--quiet", "--ntasks=1", *words, *hold],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout
        self.id = ""

    def take(self) -> None:
        """Read the id, which arrives with the node. Raises pytest.UsageError if Slurm has refused."""
        self.id = self.output.readline().strip()
        if not self.id:
            _, words = self.process.communicate()
            raise pytest.UsageError(f"Slurm gives no node: {' '.join(words.split())}")

    def release(self) -> None:
        if not self.id:
            # It does not read its input yet.
            self.process.terminate()
        self.process.communicate()


class SlurmWorkers:
    """Asks for all nodes at once, because xdist waits for one worker before it starts the next.

    Registered on the controller. The jobs end with it, even if it is killed.
    """

    def __init__(self, words: Sequence[str]) -> None:
        """`words` are options of the jobs. Raises pytest.UsageError."""
        if missing := [name for name in ("salloc", "srun") if shutil.which(name) is None]:
            raise pytest.UsageError(
                f"--super-machines: the program {missing[0]} is missing here: run pytest on a login node"
            )
        self.words = words
        self.jobs: list[Job] = []

    # First, because xdist's terminal counts the workers here.
    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: list[execnet.XSpec]) -> None:
        """Start the workers for which there are nodes. Raises pytest.UsageError."""
        # Within a job, workers are its steps.
        if "SLURM_JOB_ID" in os.environ:
            for spec in specs:
                spec.python = command(self.words)
            return
        self.jobs = [Job(self.words) for _ in specs]
        self.wait(config.pluginmanager.getplugin("terminalreporter"))
        granted = [job for job in self.jobs if job.id]
        # The scheduler waits for as many workers as there are entries.
        del specs[len(granted) :], config.option.tx[len(granted) :]
        for spec, job in zip(specs, granted, strict=True):
            spec.python = command([f"--jobid={job.id}"])

    def wait(self, terminal: Any) -> None:
        """Wait for the first node, and for others while they come."""
        waiting, since, is_told = list(self.jobs), time.monotonic(), False
        while waiting:
            ready, _, _ = select.select([job.output for job in waiting], [], [], 1)
            for job in [job for job in waiting if job.output in ready]:
                job.take()
                waiting.remove(job)
                since = time.monotonic()
            if not waiting or time.monotonic() - since < PATIENCE:
                continue
            has_some = len(waiting) < len(self.jobs)
            if has_some or not is_told:
                then = "with the others" if has_some else "with the first that has one"
                terminal.write_line(
                    f"after {PATIENCE:.0f} s, {len(waiting)} of {len(self.jobs)} workers have no node "
                    f"({reasons()}): the run begins {then}"
                )
            is_told = True
            if has_some:
                break
        for job in waiting:
            job.release()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """Let the worker that replaces one that died have a job of its own: a node can be dead."""
        if self.jobs and error is not None:
            node.gateway.spec.python = command(self.words)

    def pytest_unconfigure(self) -> None:
        for job in self.jobs:
            job.release()


def reasons() -> str:
    """Why the user's jobs wait, in Slurm's words."""
    asked = ["squeue", f"--user={os.getuid()}", "--states=PENDING", "--noheader", "--format=%r"]
    told = subprocess.run(asked, stdout=subprocess.PIPE, text=True).stdout
    return ", ".join(sorted(set(told.split("\n")) - {""})) or "squeue gives no reason"


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
