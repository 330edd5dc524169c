"""The pre-executed steps of a trial: run in its kernel, or run and saved, or restored from a snapshot.

A restored snapshot has to leave the kernel as its steps did, as far as shell steps change it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.sandbox import Sandbox, SnapshotSandbox
from pytest_super.snapshots.covered_steps import Plan, plan_of
from pytest_super.snapshots.record import (
    SnapshotRecord,
    archive_of,
    lock,
    owner_name,
    read_record,
    replace_snapshot,
    snapshot_name,
    write_record,
)
from pytest_super.store.trajectory import Step
from pytest_super.store.user_cache import cache_folder
from pytest_super.tasks.task import Task
from pytest_super.trial.prefix import pre_execute

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel

# Steps that take less time than this run faster than their files are saved and restored.
WORTH_SECONDS = 1.0
# Downloads change, so a snapshot made with a network expires.
NETWORK_SECONDS = 86400.0
# The pause after a failure to save or restore: on a full disk every trial would fail again.
FAILED_SECONDS = 600.0


class State(NamedTuple):
    """What `inside` reports. Code inside can have changed it: it is only compared."""

    kernel: str
    """A digest of what shell steps can change for Python."""
    processes: list[str]
    unsaved: list[Any]


@cache
def source() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


def state_of(kernel: Kernel) -> State:
    """Facts that are the same in equivalent kernels. InfrastructureError if code inside has broken Python."""
    # The functions of `inside` get a scope of their own, so that nothing stays in the kernel.
    expression = f"(lambda scope: (exec({source()!r}, scope), scope['state']())[1])({{'__name__': 'inside'}})"
    try:
        return State(**kernel.evaluate(expression))
    except (ValueError, TypeError) as error:
        raise InfrastructureError(f"the kernel does not report its state: {error}") from None


class UnlikeError(InfrastructureError):
    """The kernel that starts from a snapshot differs from the kernel that ran the steps."""


class NotMadeError(Exception):
    """There is no snapshot yet, and the caller must not make one."""


@dataclass(eq=False)
class Prefix:
    """All steps are run by the trial itself."""

    task: Task
    holds_repository = False
    """Whether the sandbox starts with the task's repository in it."""

    def prepare(self, kernel: Kernel) -> None:
        """Called once, when the kernel has started. Raises InfrastructureError."""

    def steps(self, kernel: Kernel) -> Iterator[Step]:
        """Yields each step when it has ended. Raises InfrastructureError."""
        yield from pre_execute(self.task, kernel)

    def close(self) -> None:
        """Let trials that wait for this one continue. Idempotent."""


@dataclass(eq=False)
class RestoredPrefix(Prefix):
    """The sandbox starts with the files of the first steps; the others are run."""

    plan: Plan
    path: Path
    record: SnapshotRecord
    actions: int = field(default=0, init=False)
    holds_repository = True

    def prepare(self, kernel: Kernel) -> None:
        if self.plan.settings:
            kernel.execute(self.plan.settings)
        # Only a new kernel sees what `pip install -e` puts on its path.
        if state_of(kernel).kernel != self.record.kernel:
            raise UnlikeError("the kernel has another folder, environment or module path than before")
        self.actions = kernel.actions

    def steps(self, kernel: Kernel) -> Iterator[Step]:
        if kernel.actions != self.actions:
            raise InfrastructureError(
                "something acted in the kernel before its prefix, whose files were restored already: "
                "use --super-no-cache"
            )
        yield from self.record.steps
        yield from pre_execute(self.task, kernel, after=self.plan.length)

    def refuse(self, error: Exception) -> None:
        """Stop using the snapshot: for good if it differs, for a while if it could not be restored."""
        expires = None if isinstance(error, UnlikeError) else time.time() + FAILED_SECONDS
        with suppress(OSError):
            # The record first: without archive and record, another trial would make the snapshot again.
            write_record(self.path, SnapshotRecord(useless=str(error), expires=expires))
            archive_of(self.path).unlink(missing_ok=True)


@dataclass(eq=False)
class SavedPrefix(Prefix):
    """All steps are run, and the files of the first ones saved; other trials wait for that."""

    plan: Plan
    path: Path
    sandbox: SnapshotSandbox
    claim: ExitStack
    before: State | None = field(default=None, init=False)
    """None without an answer: then no snapshot is made, but the steps run."""
    actions: int = field(default=0, init=False)

    def prepare(self, kernel: Kernel) -> None:
        with suppress(InfrastructureError):
            self.before = state_of(kernel)
        self.actions = kernel.actions

    def steps(self, kernel: Kernel) -> Iterator[Step]:
        done: list[Step] = []
        # The name of a snapshot does not depend on what a project's own code did in the kernel.
        can_save = self.before is not None and kernel.actions == self.actions
        try:
            for step in super().steps(kernel):
                yield step
                done.append(step)
                if step.number == self.plan.length and not step.is_running and can_save:
                    self.save(kernel, done)
                    # Trials that wait for this one need only these steps.
                    self.close()
        finally:
            self.close()

    def save(self, kernel: Kernel, done: list[Step]) -> None:
        """A failure is recorded and does not end the trial."""
        try:
            record = self.make(kernel, done)
        except (InfrastructureError, OSError) as error:
            record = SnapshotRecord(
                useless=f"it could not be saved: {error}", expires=time.time() + FAILED_SECONDS
            )
        with suppress(OSError):
            write_record(self.path, record)
            replace_snapshot(self.path, owner_name(self.task))

    def make(self, kernel: Kernel, done: list[Step]) -> SnapshotRecord:
        """Raises InfrastructureError and OSError."""
        seconds = sum(step.seconds for step in done)
        if seconds < WORTH_SECONDS:
            return SnapshotRecord(useless=f"it would save only {seconds:.2f} s")
        assert self.before is not None
        after = state_of(kernel)
        if self.before.processes != after.processes:
            return SnapshotRecord(useless="it leaves processes running")
        if self.before.unsaved != after.unsaved:
            where = "/dev/shm, /etc/hosts, /etc/resolv.conf"
            return SnapshotRecord(useless=f"it writes where no files are saved: {where}")
        # A reader must never find a part of an archive under its real name.
        draft = self.path.with_suffix(f".{os.getpid()}.tar")
        try:
            self.sandbox.save(draft)
            draft.replace(archive_of(self.path))
        finally:
            draft.unlink(missing_ok=True)
        expires = time.time() + NETWORK_SECONDS if self.task.sandbox.network else None
        return SnapshotRecord(steps=done, kernel=after.kernel, expires=expires)

    def close(self) -> None:
        self.claim.close()


def prefix_of(task: Task, sandbox: Sandbox, *, may_make: bool, folder: Path | None = None) -> Prefix:
    """The prefix of a trial whose `sandbox` is not open yet; sets the files that the sandbox starts with.

    Waits while another trial makes the snapshot. Raises NotMadeError instead of waiting or making one
    if `may_make` is false.
    """
    plan = plan_of(task.pre_execute) if sandbox.capabilities.snapshots else None
    if plan is None:
        return Prefix(task)
    try:
        return cached_prefix(task, plan, cast("SnapshotSandbox", sandbox), may_make, folder)
    except (InfrastructureError, OSError):
        # A snapshot only saves time, so no failure of one is the trial's.
        return Prefix(task)


def cached_prefix(
    task: Task, plan: Plan, sandbox: SnapshotSandbox, may_make: bool, folder: Path | None
) -> Prefix:
    folder = folder or cache_folder("snapshots")
    path = folder / f"{snapshot_name(task, plan.length, sandbox.identity)}.json"
    if found := known_prefix(task, plan, path, sandbox):
        return found
    if not may_make:
        raise NotMadeError
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(lock(path.with_suffix(".lock")))
        # Another trial can have made the snapshot while this one waited.
        if found := known_prefix(task, plan, path, sandbox):
            return found
        # The lock passes to the prefix, which holds it until the files are saved.
        return SavedPrefix(task, plan, path, sandbox, stack.pop_all())


def known_prefix(task: Task, plan: Plan, path: Path, sandbox: SnapshotSandbox) -> Prefix | None:
    """Find a prefix; None if no trial has recorded a result yet, or the snapshot is gone."""
    record = read_record(path)
    if record is None:
        return None
    if record.useless:
        return Prefix(task)
    sandbox.restore(archive_of(path))
    return RestoredPrefix(task, plan, path, record)
