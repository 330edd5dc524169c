"""The sandbox of a trial: one that has what the task requires, and the way its prefix is run there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_super.errors import UnsupportedError
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import missing_capabilities, name_of
from pytest_super.session.item import SANDBOX
from pytest_super.session.private_pytest import fixture_definitions
from pytest_super.session.run import RUN
from pytest_super.snapshots.prefix import Prefix, prefix_of

if TYPE_CHECKING:
    import pytest

    from pytest_super.kernel.sandbox import Sandbox
    from pytest_super.session.item import TaskItem
    from pytest_super.session.run import Run
    from pytest_super.tasks.task import Task


OWN_FIXTURES = "pytest_super.session.fixtures"
KERNEL_FIXTURES = frozenset({"super_kernel", "super_make_kernel"})


class Placement(NamedTuple):
    """The sandbox of a trial, not open yet, and how its prefix is run there."""

    sandbox: Sandbox
    prefix: Prefix


def choose_place(item: TaskItem, task: Task, *, may_make: bool = True) -> Placement:
    """The placement of a trial, from a snapshot if there is one.

    `may_make` allows this trial to make the snapshot. Raises UnsupportedError, and NotMadeError as
    `prefix_of` does.
    """
    sandbox = choose_sandbox(item, task)
    if not uses_snapshots(item):
        return Placement(sandbox, Prefix(task))
    return Placement(sandbox, prefix_of(task, sandbox, may_make=may_make))


def uses_snapshots(item: TaskItem) -> bool:
    """Whether the trial can use snapshots: not if a fixture of the project handles the kernel.

    The name of a snapshot does not depend on what such a fixture does.
    """
    if item.config.stash[RUN].settings.no_cache:
        return False
    fixtures = fixture_definitions(item)
    return fixtures is not None and not any(map(is_foreign_with_kernel, fixtures))


def is_foreign_with_kernel(fixture: pytest.FixtureDef[Any]) -> bool:
    """Whether a project's own fixture makes the kernel, or requests it."""
    handles_kernel = not KERNEL_FIXTURES.isdisjoint({fixture.argname, *fixture.argnames})
    return handles_kernel and fixture.func.__module__ != OWN_FIXTURES


def choose_sandbox(item: TaskItem, task: Task) -> Sandbox:
    """The sandbox that the hook makes. Raises UnsupportedError if it lacks something the task requires."""
    sandbox: Sandbox = item.ihook.pytest_super_make_sandbox(config=item.config, task=task)
    missing = missing_capabilities(task.sandbox, sandbox.capabilities)
    if missing:
        remark = f" ({sandbox.capabilities.remark})" if sandbox.capabilities.remark else ""
        raise UnsupportedError(
            f"{task.id} requires {', '.join(missing)}, which the {name_of(sandbox)} sandbox lacks{remark}"
        )
    item.stash[SANDBOX] = {"sandbox": name_of(sandbox), "isolated": sandbox.capabilities.isolation}
    return sandbox


def make_sandbox(run: Run, task: Task) -> Sandbox:
    """A sandbox of the run's provider. Raises UnsupportedError if the run has no provider."""
    if run.sandbox is None:
        raise UnsupportedError(
            f"{task.id} got no sandbox from pytest_super_make_sandbox, and no provider can be used"
        )
    settings = run.settings
    for_trial = replace(
        settings.for_sandboxes,
        labels={"run": run.id, "task": task.id, "worker": os.environ.get("PYTEST_XDIST_WORKER", "main")},
        # Results and task files contain gold answers.
        hidden=(settings.directory, Path(task._path).parent),
    )
    return find_provider(run.sandbox).make(task.sandbox, for_trial)
