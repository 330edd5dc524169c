"""The kernel of a trial: started in its sandbox, with the repository copied into it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.session.item import PREFIX, PROVIDED
from pytest_super.session.sandboxes import Placement, choose_place, choose_sandbox
from pytest_super.session.start_ahead import START_AHEAD, ReadyKernel
from pytest_super.snapshots.prefix import Prefix, RestoredPrefix

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.session.item import TaskItem
    from pytest_super.tasks.task import Repository, Task


def start_kernel(item: TaskItem, task: Task) -> Kernel:
    """A kernel that is ready, in a sandbox that has what the task requires. Raises InfrastructureError."""
    # The process can die while the kernel starts. The folder then shows that there was a trial.
    item.open_folder()
    ahead = item.config.stash[START_AHEAD]
    if PREFIX in item.stash:
        item.stash[PREFIX].close()
    ready = ahead.take(item, task) or first_ready(item, task)
    item.stash[PREFIX] = ready.prefix
    # A trial can end before its prefix is run.
    item.addfinalizer(ready.prefix.close)
    if ready.repository is not None:
        item.stash[PROVIDED] = ready.repository
    try:
        # After `take`, because it closes a kernel that was not taken.
        ahead.begin()
    except BaseException:
        # The fixture does not have the kernel yet, so only we can close it.
        ready.close()
        raise
    return ready.kernel


def first_ready(item: TaskItem, task: Task) -> ReadyKernel:
    """A kernel, from a snapshot if there is one that works. Raises InfrastructureError."""
    place = choose_place(item, task)
    try:
        return ready_kernel(place, task)
    except (InfrastructureError, OSError) as error:
        if not isinstance(place.prefix, RestoredPrefix):
            raise
        place.prefix.refuse(error)
    return ready_kernel(Placement(choose_sandbox(item, task), Prefix(task)), task)


def ready_kernel(place: Placement, task: Task) -> ReadyKernel:
    """Start the kernel, copy the repository and prepare the prefix. Raises InfrastructureError."""
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
    """Copy the repository into the working directory, unless it is there. Returns the folder's name."""
    from pytest_super.sources import fetch

    # Also when a snapshot has the repository: it determines the folder's name.
    folder = fetch(repository, base=Path(task._path).parent)
    if ready.prefix.holds_repository:
        return folder.name
    try:
        ready.kernel.upload(folder, folder.name)
    # The agent has done nothing yet, so a lost sandbox is not its doing.
    except (SandboxLostError, OSError) as error:
        raise InfrastructureError(f"the repository cannot be put into the sandbox: {error}") from error
    return folder.name
