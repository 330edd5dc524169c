"""A trial's sandbox and kernel: made as the task requires, provided with its repository, removed or kept."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_super.conduct import RESULT
from pytest_super.errors import UnsupportedError
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.sandbox import missing_capabilities
from pytest_super.run import RUN

if TYPE_CHECKING:
    from pytest_super.kernel.sandbox import Sandbox
    from pytest_super.kernel.docker import DockerSettings
    from pytest_super.run import Run
    from pytest_super.task import Task


def start_kernel(item: Any, task: Task) -> tuple[Sandbox, Kernel]:
    """A kernel that is ready, in a sandbox that can all that the task requires. Raises InfrastructureError."""
    sandbox: Sandbox = item.ihook.pytest_super_make_sandbox(config=item.config, task=task)
    missing = missing_capabilities(task.sandbox, sandbox.capabilities)
    if missing:
        needs = ", ".join(missing)
        raise UnsupportedError(
            f"{task.id} requires {needs}, which the {item.config.stash[RUN].sandbox} sandbox lacks"
        )
    # Made now, so that a trial whose process dies while the kernel starts is known.
    item.folder  # noqa: B018
    kernel = Kernel(sandbox)
    try:
        kernel.start()
        provide_repository(task, kernel)
    except BaseException:
        kernel.close()
        raise
    return sandbox, kernel


def provide_repository(task: Task, kernel: Kernel) -> None:
    if task.repository is None or not task.repository.provide:
        return
    from pytest_super.sources import fetch

    folder = fetch(task.repository, base=Path(task._path).parent)
    kernel.upload(folder, folder.name)


def stop_kernel(item: Any, sandbox: Sandbox, kernel: Kernel) -> None:
    """Close the kernel and its sandbox, but keep what --super-keep says."""
    result = item.stash.get(RESULT, None)
    keep = item.config.stash[RUN].settings.keep
    if keep == "all" or (keep == "failed" and (result is None or not result.solved)):
        how = sandbox.keep()
        if result is not None:
            result = replace(result, kept=how)
            item.folder.write_result(result)
        item.add_report_section("teardown", "super", f"sandbox kept: {how}")
    kernel.close()


def make_sandbox(run: Run, task: Task) -> Sandbox:
    """The built-in sandbox that the run has chosen."""
    if run.sandbox == "local":
        from pytest_super.kernel.local import LocalSandbox

        return LocalSandbox(task.sandbox)
    from pytest_super.kernel.docker import DockerSandbox

    return DockerSandbox(task.sandbox, docker_settings(run, task))


def docker_settings(run: Run, task: Task) -> DockerSettings:
    from pytest_super.kernel.docker import DockerSettings

    settings = run.settings
    given = {"image": settings.image} if settings.image else {}
    return DockerSettings(
        ca_bundle=settings.ca_bundle,
        pip_config=settings.pip_config,
        mounts=dict(settings.mounts),
        labels={"run": run.id, "task": task.id, "worker": os.environ.get("PYTEST_XDIST_WORKER", "main")},
        **given,
    )
