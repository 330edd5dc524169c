"""Refuses a run before its first trial if tasks or machines cannot have the sandboxes that it needs."""

import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import pytest

from pytest_super.agents.registry import TRUSTED
from pytest_super.errors import InfrastructureError
from pytest_super.kernel.providers.registry import AUTO, find_provider, why_not
from pytest_super.session.run import REFUSED, RUN, Run, is_worker
from pytest_super.session.trial.item import TaskItem
from pytest_super.tasks.task import Task
from pytest_super.words import counted


def refuse_missing_packages(config: pytest.Config, items: list[pytest.Item]) -> None:
    """End the session if sandboxes use this machine's Python and it lacks one of `sandbox.packages`."""
    run = config.stash[RUN]
    # The sandboxes that a project makes can have a Python of their own.
    if run.sandbox is None or run.image_id or makes_sandboxes(config):
        return
    if not find_provider(run.sandbox).uses_host_python:
        return
    tasks = [item.task for item in items if isinstance(item, TaskItem)]
    if message := about_missing(tasks, run.sandbox):
        refuse_to_run(config, items, message)


def makes_sandboxes(config: pytest.Config) -> bool:
    """Whether the project does. One implementation of the hook is ours."""
    return len(config.hook.pytest_super_make_sandbox.get_hookimpls()) > 1


def refuse_to_run(config: pytest.Config, items: list[pytest.Item], message: str) -> NoReturn:
    """Raises pytest.UsageError; a worker sends the message to its controller, which raises it."""
    if is_worker(config):
        # Pytest reports the items anyway, and the controller would make a run's folder for them.
        items.clear()
        config.workeroutput[REFUSED] = message  # type: ignore[attr-defined]
        pytest.exit(message, returncode=pytest.ExitCode.USAGE_ERROR)
    raise pytest.UsageError(message)


def about_missing(tasks: Sequence[Task], sandbox: str) -> str:
    """What is missing for which tasks and what to do; "" if nothing is."""
    needed = sorted({package for task in tasks for package in task.sandbox.packages})
    missing = {package: why for package in needed if (why := why_missing(package))}
    if not missing:
        return ""
    refused = {task.id for task in tasks if not missing.keys().isdisjoint(task.sandbox.packages)}
    listed = ", ".join(f"{package} ({why})" for package, why in missing.items())
    return (
        f"{counted(len(refused), 'task')} cannot run in the {sandbox} sandbox: "
        f"it uses this machine's Python, which lacks {listed}; "
        f"run `pip install {shlex.join(missing)}`, or use containers (--super-sandbox=docker)"
    )


def why_missing(package: str) -> str:
    """Why the required version of a package is not there; "" if it is."""
    # Not at the top: it takes time to load, and few runs have tasks with packages.
    from packaging.requirements import Requirement

    requirement = Requirement(package)
    if requirement.marker is not None and not requirement.marker.evaluate():
        return ""
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return "not installed"
    return "" if requirement.specifier.contains(installed, prereleases=True) else f"installed is {installed}"


def refuse_unfit_machine(config: pytest.Config, items: list[pytest.Item]) -> None:
    """End the session of a worker, and so the run, before its first trial. The message names the machine."""
    if not items or makes_sandboxes(config):
        return
    if reason := why_unfit(config.stash[RUN]):
        name = os.environ.get("SLURMD_NODENAME") or platform.node()
        refuse_to_run(config, items, f"the machine {name} cannot run trials: {reason}")


def refuse_shared_gpus(config: pytest.Config, items: list[pytest.Item], workers: int) -> None:
    """End the session if several workers run tasks with GPUs: the engine always gives the first devices."""
    tasks = sorted({item.task.id for item in items if isinstance(item, TaskItem) and item.task.sandbox.gpus})
    if tasks and workers > 1:
        refuse_to_run(
            config,
            items,
            f"{counted(len(tasks), 'task')} with `sandbox.gpus` ({tasks[0]}) cannot run on {workers} "
            "workers, because their trials would share the first GPU: run them with -n 1 or without -n",
        )


def why_unfit(run: Run) -> str | None:
    """What the controller has asked of its own machine, asked of this one."""
    if run.sandbox is None:
        return None
    provider, settings = find_provider(run.sandbox), run.settings.for_sandboxes
    try:
        reason = why_not(provider, settings)
        if reason is None and provider.image_id(settings) != run.image_id:
            reason = f"{settings.image} is another image there than on the machine of the controller"
    except InfrastructureError as error:
        reason = str(error)
    if reason is None and run.settings.sandbox == AUTO and run.settings.agent not in TRUSTED:
        reason = provider.why_not_isolated()
    return reason
