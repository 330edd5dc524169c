"""The kernel of a trial: its sandbox chosen as the task requires, and the repository copied into it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.errors import InfrastructureError, UnsupportedError
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import missing_capabilities, name_of
from pytest_super.session.item import PREFIX, PROVIDED, SANDBOX
from pytest_super.session.private_pytest import fixture_definitions
from pytest_super.session.run import RUN
from pytest_super.session.start_ahead import START_AHEAD, Placement, ReadyKernel
from pytest_super.snapshots.prefix import Prefix, RestoredPrefix, prefix_of

if TYPE_CHECKING:
    import pytest

    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.sandbox import Sandbox
    from pytest_super.session.item import TaskItem
    from pytest_super.session.run import Run
    from pytest_super.tasks.task import Repository, Task


OWN_FIXTURES = "pytest_super.session.fixtures"
KERNELS = frozenset({"super_kernel", "super_make_kernel"})


def start_kernel(item: TaskItem, task: Task) -> Kernel:
    """A kernel that is ready, in a sandbox that has what the task requires. Raises InfrastructureError."""
    # So that a trial whose process dies while the kernel starts is known.
    item.open_folder()
    ahead = item.config.stash[START_AHEAD]
    if PREFIX in item.stash:
        item.stash[PREFIX].close()
    ready = ahead.take(item, task) or first_ready(item, task)
    item.stash[PREFIX] = ready.prefix
    # A trial may end before its prefix is run.
    item.addfinalizer(ready.prefix.close)
    if ready.repository is not None:
        item.stash[PROVIDED] = ready.repository
    try:
        ahead.begin()
    except BaseException:
        ready.close()
        raise
    return ready.kernel


def first_ready(item: TaskItem, task: Task) -> ReadyKernel:
    """From a snapshot where there is one that serves. Raises InfrastructureError."""
    place = choose_place(item, task)
    try:
        return ready_kernel(place, task)
    except (InfrastructureError, OSError) as error:
        if not isinstance(place.prefix, RestoredPrefix):
            raise
        place.prefix.refuse(error)
    return ready_kernel(Placement(choose_sandbox(item, task), Prefix(task)), task)


def choose_place(item: TaskItem, task: Task, *, may_make: bool = True) -> Placement:
    """Raises UnsupportedError as `choose_sandbox`, NotMadeError as `prefix_of`."""
    sandbox = choose_sandbox(item, task)
    if not uses_snapshots(item):
        return Placement(sandbox, Prefix(task))
    return Placement(sandbox, prefix_of(task, sandbox, may_make=may_make))


def choose_next_place(item: TaskItem, task: Task) -> Placement:
    """For a trial whose turn has not come: it makes no snapshot, which would take time of the one that runs.

    Raises what `choose_place` does.
    """
    return choose_place(item, task, may_make=False)


def uses_snapshots(item: TaskItem) -> bool:
    """Not if a fixture of the project handles the kernel: a snapshot's name does not cover what it does."""
    if item.config.stash[RUN].settings.no_cache:
        return False
    fixtures = fixture_definitions(item)
    return fixtures is not None and not any(map(is_foreign_with_kernel, fixtures))


def is_foreign_with_kernel(fixture: pytest.FixtureDef[Any]) -> bool:
    """Whether a project's own fixture makes the kernel, or requests it."""
    handles_kernel = not KERNELS.isdisjoint({fixture.argname, *fixture.argnames})
    return handles_kernel and fixture.func.__module__ != OWN_FIXTURES


def choose_sandbox(item: TaskItem, task: Task) -> Sandbox:
    """What the hook makes for the task. Raises UnsupportedError where that lacks what the task requires."""
    sandbox: Sandbox = item.ihook.pytest_super_make_sandbox(config=item.config, task=task)
    missing = missing_capabilities(task.sandbox, sandbox.capabilities)
    if missing:
        remark = f" ({sandbox.capabilities.remark})" if sandbox.capabilities.remark else ""
        raise UnsupportedError(
            f"{task.id} requires {', '.join(missing)}, which the {name_of(sandbox)} sandbox lacks{remark}"
        )
    item.stash[SANDBOX] = {"sandbox": name_of(sandbox), "isolated": sandbox.capabilities.isolation}
    return sandbox


def ready_kernel(place: Placement, task: Task) -> ReadyKernel:
    """Raises InfrastructureError."""
    from pytest_super.kernel.client import Kernel

    kernel = Kernel(place.sandbox)
    ready = ReadyKernel(kernel, None, place.prefix)
    try:
        kernel.start()
        repository = task.repository
        folder = provide_repository(task, repository, ready) if repository and repository.provide else None
        place.prefix.prepare(kernel)
    except BaseException:
        ready.close()
        raise
    return ready._replace(repository=folder)


def provide_repository(task: Task, repository: Repository, ready: ReadyKernel) -> str:
    """Copy the repository into the working directory, unless it is there; gives the folder's name."""
    from pytest_super.sources import fetch

    folder = fetch(repository, base=Path(task._path).parent)
    if ready.prefix.holds_repository:
        return folder.name
    try:
        ready.kernel.upload(folder, folder.name)
    except (SandboxLostError, OSError) as error:
        raise InfrastructureError(f"the repository cannot be put into the sandbox: {error}") from error
    return folder.name


def make_sandbox(run: Run, task: Task) -> Sandbox:
    """A sandbox of the run's provider. Raises InfrastructureError where there is none."""
    if run.sandbox is None:
        raise UnsupportedError(
            f"{task.id} got no sandbox from pytest_super_make_sandbox, and no provider can be used"
        )
    settings = run.settings
    for_trial = replace(
        settings.for_sandboxes,
        labels={"run": run.id, "task": task.id, "worker": os.environ.get("PYTEST_XDIST_WORKER", "main")},
        hidden=(settings.directory, Path(task._path).parent),
    )
    return find_provider(run.sandbox).make(task.sandbox, for_trial)
