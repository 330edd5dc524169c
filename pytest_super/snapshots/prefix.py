"""The pre-executed steps of a trial: run in its kernel, or found in a snapshot, or run and made into one."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pytest_super.errors import InfrastructureError
from pytest_super.snapshots import state
from pytest_super.snapshots.record import (
    FORMAT,
    Record,
    StillMadeError,
    archive_of,
    lock,
    read_record,
    replace_snapshot,
    write_record,
)
from pytest_super.store.user_cache import cache_folder
from pytest_super.trial.prefix import pre_execute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.kernel.client import Kernel
    from pytest_super.kernel.sandbox import Sandbox, SnapshotSandbox
    from pytest_super.snapshots.plan import Plan
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task

# Of the steps that it would spare: what takes less is done again sooner than it is saved.
WORTH_SECONDS = 1.0
# What comes from the network is another thing some day.
NETWORK_SECONDS = 86400.0
# After one could not be saved or used: on a full disk each trial would fail at it again.
FAILED_SECONDS = 600.0


class UnlikeError(InfrastructureError):
    """What a snapshot gave is not what the prefix gave."""


class NotMadeError(Exception):
    """There is no snapshot yet: the first trial that needs it makes it."""


class Prefix:
    """Run by the trial itself."""

    holds_repository = False
    """Whether the sandbox starts with the task's repository in it."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def prepare(self, kernel: Kernel) -> None:
        """Called when the kernel has started in its sandbox. Raises InfrastructureError."""

    def steps(self, kernel: Kernel) -> Iterator[Step]:
        """Each when it has ended. Raises InfrastructureError."""
        yield from pre_execute(self.task, kernel)

    def close(self) -> None:
        """Give up what others wait for. Idempotent."""


class RestoredPrefix(Prefix):
    """The first steps are in the files of the sandbox, their state is made by `prepare`."""

    holds_repository = True

    def __init__(self, task: Task, plan: Plan, path: Path, record: Record) -> None:
        super().__init__(task)
        self.plan = plan
        self.path = path
        self.record = record
        self.actions = 0

    def prepare(self, kernel: Kernel) -> None:
        for index, step in enumerate(self.task.pre_execute[: self.plan.length]):
            if index in self.plan.replayed:
                self.replay(kernel, index)
            elif step.cell is not None:
                state.skip_cell(kernel, step.cell)
        state.set_exit_code(kernel, self.record.state)
        if differs := state.difference(state.digests(state.state_of(kernel)), self.record.state):
            raise UnlikeError(f"another kernel than before: {differs}")
        self.actions = kernel.actions

    def replay(self, kernel: Kernel, index: int) -> None:
        cell = self.task.pre_execute[index].cell
        assert cell is not None
        found, wanted = kernel.execute(cell).outcome.value, self.record.steps[index].outcome
        if found != wanted:
            raise UnlikeError(f"cell {index + 1} ended in {found}, and before in {wanted}")

    def steps(self, kernel: Kernel) -> Iterator[Step]:
        if kernel.actions != self.actions:
            raise InfrastructureError(
                "something acted in the kernel before its prefix, which is in its files already: "
                "use --super-no-cache"
            )
        yield from self.record.steps
        yield from pre_execute(self.task, kernel, after=self.plan.length)

    def refuse(self, error: Exception) -> None:
        """Let nobody try it again: for a while where it could not be used, for good where it differs."""
        expires = None if isinstance(error, UnlikeError) else time.time() + FAILED_SECONDS
        with suppress(OSError):
            write_record(self.path, Record(useless=str(error), expires=expires))
            archive_of(self.path).unlink(missing_ok=True)


class SavedPrefix(Prefix):
    """Run by the trial itself, and saved for others, who wait for it until it is closed."""

    def __init__(
        self, task: Task, plan: Plan, path: Path, sandbox: SnapshotSandbox, claim: ExitStack
    ) -> None:
        super().__init__(task)
        self.plan = plan
        self.path = path
        self.sandbox = sandbox
        self.claim = claim
        self.before: state.State = {}
        self.actions = 0

    def prepare(self, kernel: Kernel) -> None:
        with suppress(InfrastructureError):
            self.before = state.state_of(kernel)
        self.actions = kernel.actions

    def steps(self, kernel: Kernel) -> Iterator[Step]:
        done: list[Step] = []
        # What a project's own code did before is not in the name.
        is_alone = bool(self.before) and kernel.actions == self.actions
        try:
            for step in super().steps(kernel):
                yield step
                done.append(step)
                if len(done) == self.plan.length and is_alone:
                    self.save(kernel, done)
                    self.close()
        finally:
            self.close()

    def save(self, kernel: Kernel, done: list[Step]) -> None:
        """What does not become a snapshot is no fault of this trial."""
        try:
            record = self.record(kernel, done)
        except (InfrastructureError, OSError) as error:
            record = Record(useless=f"it could not be saved: {error}", expires=time.time() + FAILED_SECONDS)
        with suppress(OSError):
            write_record(self.path, record)
            replace_snapshot(self.path, owner_of(self.task))

    def record(self, kernel: Kernel, done: list[Step]) -> Record:
        spared = sum(step.seconds for index, step in enumerate(done) if index not in self.plan.replayed)
        if spared < WORTH_SECONDS:
            return Record(useless=f"it would spare {spared:.2f} s")
        after = state.state_of(kernel)
        if useless := state.trouble(self.before, after):
            return Record(useless=useless)
        draft = self.path.with_suffix(f".{os.getpid()}.tar")
        try:
            self.sandbox.save(draft)
            draft.replace(archive_of(self.path))
        finally:
            draft.unlink(missing_ok=True)
        expires = time.time() + NETWORK_SECONDS if self.task.sandbox.network else None
        return Record(steps=done, state=state.digests(after), expires=expires)

    def close(self) -> None:
        self.claim.close()


def prefix_of(task: Task, sandbox: Sandbox, *, may_make: bool, folder: Path | None = None) -> Prefix:
    """How the trial comes by its prefix; the sandbox, which is not open yet, may be told to start elsewhere.

    Waits while another trial makes the snapshot. Where not `may_make`, raises NotMadeError instead of waiting
    or making one.
    """
    if not (task.pre_execute and sandbox.capabilities.snapshots):
        return Prefix(task)
    from pytest_super.snapshots.plan import plan_of

    plan = plan_of(task.pre_execute)
    if plan is None:
        return Prefix(task)
    try:
        return cached_prefix(task, plan, cast("SnapshotSandbox", sandbox), may_make, folder)
    except (InfrastructureError, OSError, StillMadeError):
        return Prefix(task)


def cached_prefix(
    task: Task, plan: Plan, sandbox: SnapshotSandbox, may_make: bool, folder: Path | None
) -> Prefix:
    folder = folder or cache_folder("snapshots")
    path = folder / f"{name_of(task, plan, sandbox.identity)}.json"
    if found := known_prefix(task, plan, path, sandbox):
        return found
    if not may_make:
        raise NotMadeError
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(lock(path.with_suffix(".lock")))
        if found := known_prefix(task, plan, path, sandbox):
            return found
        return SavedPrefix(task, plan, path, sandbox, stack.pop_all())


def known_prefix(task: Task, plan: Plan, path: Path, sandbox: SnapshotSandbox) -> Prefix | None:
    """None where nobody has tried yet, or the snapshot is gone."""
    record = read_record(path)
    if record is None:
        return None
    if record.useless:
        return Prefix(task)
    sandbox.restore(archive_of(path))
    return RestoredPrefix(task, plan, path, record)


def name_of(task: Task, plan: Plan, identity: str) -> str:
    """By content: the same steps on the same files in the same sandbox have the same name."""
    steps = [step.model_dump() for step in task.pre_execute[: plan.length]]
    return digest([FORMAT, identity, repository_of(task), steps])


def repository_of(task: Task) -> Any:
    repository = task.repository
    if repository is None or not repository.provide:
        return None
    if repository.path is None:
        return repository.model_dump()
    # Not pinned: its files can change.
    root = Path(task._path).parent / repository.path
    return [root.name, [entry_of(root, path) for path in sorted(root.rglob("*"))]]


def entry_of(root: Path, path: Path) -> list[Any]:
    found = path.lstat()
    content = ""
    if path.is_symlink():
        content = os.readlink(path)
    elif path.is_file():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    return [str(path.relative_to(root)), found.st_mode, content]


def owner_of(task: Task) -> str:
    """Of whom there is one snapshot at a time, so that an edited task file leaves none behind."""
    return digest([task._path, task.id])


def digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:32]
