"""The kernel of a trial, in a sandbox that has what the task requires, with its repository."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_super.agents.registry import runs_cells
from pytest_super.errors import InfrastructureError, UnsupportedError
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import (
    FIXED_ENVIRONMENT,
    Sandbox,
    name_of,
    refuse_missing,
    software_of,
)
from pytest_super.session.private_pytest import fixture_definitions, is_own
from pytest_super.session.run import RUN, Run
from pytest_super.session.trial.item import ReadyKernel, TaskItem
from pytest_super.session.trial.start_ahead import START_AHEAD, Placement
from pytest_super.snapshots.prefix import Prefix, RestoredPrefix, prefix_of
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Repository, Task

if TYPE_CHECKING:
    from pytest_super.grading.masked_code import PaperCode
    from pytest_super.kernel.client import Kernel

KERNEL_FIXTURES = frozenset({"super_kernel", "super_make_kernel"})


def start_kernel(item: TaskItem, task: Task) -> Kernel:
    """A kernel that is ready, in a sandbox that has what the task requires. Raises InfrastructureError."""
    # The process can die while the kernel starts. The folder then shows that there was a trial.
    item.open_folder()
    ahead = item.config.stash[START_AHEAD]
    if item.ready is not None:
        item.ready.prefix.close()
    item.ready = ready = ahead.take(item, task) or first_ready(item, task)
    # A trial can end before its prefix is run.
    item.addfinalizer(ready.prefix.close)
    try:
        # After `take`, because it closes a kernel that was not taken.
        ahead.begin()
    except BaseException:
        # The fixture does not have the kernel yet, so only we can close it.
        ready.close()
        raise
    return ready.kernel


def first_ready(
    item: TaskItem, task: Task, code: PaperCode | None = None, *, for_grader: bool = False
) -> ReadyKernel:
    """A kernel, from a snapshot if there is one that works. Raises InfrastructureError."""
    place = choose_place(item, task, code, for_grader=for_grader)
    try:
        return ready_kernel(place, task)
    except (InfrastructureError, OSError) as error:
        if not isinstance(place.prefix, RestoredPrefix):
            raise
        place.prefix.refuse(error)
    return ready_kernel(place._replace(sandbox=choose_sandbox(item, task), prefix=Prefix(task)), task)


def ready_kernel(place: Placement, task: Task) -> ReadyKernel:
    """Start the sandbox, copy the repository and prepare the prefix. Raises InfrastructureError."""
    from pytest_super.kernel.client import Kernel

    kernel = Kernel(place.sandbox)
    ready = ReadyKernel(kernel, None, place.prefix, {}, place.code)
    try:
        kernel.start(with_kernel=place.with_kernel)
        ready = ready._replace(facts=facts_of(place.sandbox, task))
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

    code = ready.code
    # Also when a snapshot has the repository: it determines the folder's name.
    folder = code.folder if code else fetch(repository, base=task.folder)
    if ready.prefix.holds_repository:
        return folder.name
    try:
        with code.without_bodies() if code else nullcontext(folder) as tree:
            ready.kernel.files.upload(tree, folder.name)
    # The agent has done nothing yet, so a lost sandbox is not its doing.
    except (SandboxLostError, OSError) as error:
        raise InfrastructureError(f"the repository cannot be put into the sandbox: {error}") from error
    return folder.name


def choose_place(
    item: TaskItem,
    task: Task,
    code: PaperCode | None = None,
    *,
    may_make: bool = True,
    for_grader: bool = False,
) -> Placement:
    """The placement of a trial or its grader, from a snapshot if there is one.

    `may_make` allows this trial to make the snapshot. Raises InfrastructureError, and NotMadeError as
    `prefix_of` does.
    """
    sandbox = choose_sandbox(item, task)
    if code is None and isinstance(task, PaperItem):
        # Not at the top: what parses and masks code takes memory in each worker.
        from pytest_super.grading.masked_code import prepared_code

        code = prepared_code(task)
    settings = item.config.stash[RUN].settings
    # The name of a snapshot does not depend on what a fixture of the project does.
    uses_snapshots = not settings.no_cache and not has_foreign_kernel(item)
    prefix = prefix_of(task, sandbox, may_make=may_make) if uses_snapshots else Prefix(task)
    # A grader runs programs.
    agent_runs_cells = not for_grader and runs_cells(settings.agent, task)
    return Placement(sandbox, prefix, code, with_kernel=bool(task.pre_execute) or agent_runs_cells)


def has_foreign_kernel(item: TaskItem) -> bool:
    """Whether a fixture of the project handles the kernel, or can."""
    fixtures = fixture_definitions(item)
    return fixtures is None or any(
        not is_own(one) and not KERNEL_FIXTURES.isdisjoint({one.argname, *one.argnames}) for one in fixtures
    )


def choose_sandbox(item: TaskItem, task: Task) -> Sandbox:
    """The sandbox that the hook makes. Raises UnsupportedError if it lacks something the task requires."""
    sandbox: Sandbox = item.ihook.pytest_super_make_sandbox(config=item.config, task=task)
    refuse_missing(task.id, task.sandbox, sandbox)
    return sandbox


def facts_of(sandbox: Sandbox, task: Task) -> dict[str, Any]:
    """Fields of the result that describe the sandbox."""
    return {
        "sandbox": name_of(sandbox),
        "software": software_of(sandbox, task.sandbox),
        "agent_version": getattr(sandbox, "agent_version", ""),
        "isolated": sandbox.capabilities.isolation,
        "environment": {name: task.sandbox.env.get(name, value) for name, value in FIXED_ENVIRONMENT.items()},
    }


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
        hidden=(settings.directory, task.folder),
    )
    return find_provider(run.sandbox).make(task.sandbox, for_trial)
