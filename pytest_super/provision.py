"""A trial's sandbox and kernel: made as the task requires, provided with its repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.errors import InfrastructureError, UnsupportedError
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.sandbox import missing_capabilities
from pytest_super.run import RUN
from pytest_super.verdict import ISOLATED, PROVIDED

if TYPE_CHECKING:
    from pytest_super.collection import TaskItem
    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.docker import DockerSettings
    from pytest_super.kernel.sandbox import Sandbox
    from pytest_super.run import Run
    from pytest_super.task import Repository, Task


def start_kernel(item: TaskItem, task: Task) -> Kernel:
    """A kernel that is ready, in a sandbox that can what the task requires. Raises InfrastructureError."""
    from pytest_super.kernel.client import Kernel

    sandbox: Sandbox = item.ihook.pytest_super_make_sandbox(config=item.config, task=task)
    missing = missing_capabilities(task.sandbox, sandbox.capabilities)
    if missing:
        needs = ", ".join(missing)
        raise UnsupportedError(
            f"{task.id} requires {needs}, which the {item.config.stash[RUN].sandbox} sandbox lacks"
        )
    item.stash[ISOLATED] = sandbox.capabilities.isolation
    # So that a trial whose process dies while the kernel starts is known.
    item.open_folder()
    kernel = Kernel(sandbox)
    try:
        kernel.start()
        if task.repository is not None and task.repository.provide:
            item.stash[PROVIDED] = provide_repository(task, task.repository, kernel)
    except BaseException:
        kernel.close()
        raise
    return kernel


def provide_repository(task: Task, repository: Repository, kernel: Kernel) -> str:
    """Copy the repository into the working directory; gives the folder's name there."""
    from pytest_super.sources import fetch

    folder = fetch(repository, base=Path(task._path).parent)
    try:
        kernel.upload(folder, folder.name)
    except (SandboxLostError, OSError) as error:
        raise InfrastructureError(f"the repository cannot be put into the sandbox: {error}") from error
    return folder.name


def make_sandbox(run: Run, task: Task) -> Sandbox:
    """The built-in sandbox that the run has chosen."""
    if run.sandbox == "local":
        from pytest_super.kernel.local import LocalSandbox

        return LocalSandbox(task.sandbox.env)
    from pytest_super.kernel.docker import DockerSandbox

    return DockerSandbox(task.sandbox, docker_settings(run, task))


def docker_settings(run: Run, task: Task) -> DockerSettings:
    from pytest_super.kernel.docker import DockerSettings
    from pytest_super.kernel.image import DEFAULT_IMAGE

    settings = run.settings
    return DockerSettings(
        image=settings.image or DEFAULT_IMAGE,
        ca_bundle=settings.ca_bundle,
        pip_config=settings.pip_config,
        mounts=dict(settings.mounts),
        labels={"run": run.id, "task": task.id, "worker": os.environ.get("PYTEST_XDIST_WORKER", "main")},
    )
