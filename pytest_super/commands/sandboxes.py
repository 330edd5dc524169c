"""Sandboxes that a subcommand starts, and the options for them."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pytest_super.session.trial.item import ReadyKernel
from pytest_super.tasks.task import Task


def add_sandbox_arguments(parser: ArgumentParser | _ArgumentGroup) -> None:
    parser.add_argument("--sandbox", metavar="NAME", help="the provider of sandboxes (default: auto)")
    parser.add_argument("--image", help="the container image")
    parser.add_argument("--pip-config", metavar="FILE", help="a pip.conf for containers")


def kernel_starter(
    arguments: Namespace, run: str, *, is_trusted: bool = True
) -> Callable[[Task], ReadyKernel]:
    """Starts kernels in sandboxes that isolate, unless the code is trusted. Raises SuperError."""
    from pytest_super.grading.masked_code import prepared_code
    from pytest_super.kernel.providers.host_environment import trusted_certificates
    from pytest_super.kernel.providers.registry import choose_provider, find_provider
    from pytest_super.kernel.sandbox import SandboxSettings, refuse_missing
    from pytest_super.session.trial.kernels import ready_kernel
    from pytest_super.session.trial.start_ahead import Placement
    from pytest_super.snapshots.prefix import Prefix

    settings = SandboxSettings(
        image=arguments.image,
        pip_config=Path(arguments.pip_config) if arguments.pip_config else None,
        ca_bundle=trusted_certificates(os.environ),
    )
    chosen = choose_provider(arguments.sandbox or "auto", settings, is_trusted=is_trusted)
    if chosen.note:
        print(f"sandbox: {chosen.name}, {chosen.note}", file=sys.stderr)

    def start(task: Task) -> ReadyKernel:
        labels = {"run": run, "task": task.id, "worker": "main"}
        for_task = replace(settings, labels=labels, hidden=(task.folder,))
        sandbox = find_provider(chosen.name).make(task.sandbox, for_task)
        refuse_missing(task.id, task.sandbox, sandbox)
        # A grader runs programs.
        return ready_kernel(Placement(sandbox, Prefix(task), prepared_code(task), task.grade is None), task)

    return start
