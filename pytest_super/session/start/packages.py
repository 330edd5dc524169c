"""Refuses tasks before the run if their code imports packages that this machine's Python lacks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

import pytest

from pytest_super.kernel.providers.registry import find_provider
from pytest_super.session.run import REFUSED, RUN, is_worker
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
    fits = requirement.specifier.contains(installed, prereleases=True)
    return "" if fits else f"installed is {installed}"
