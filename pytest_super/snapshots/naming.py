"""Names of snapshots, made of everything that their files depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.digests import digest, tree_of
from pytest_super.snapshots.record import FORMAT
from pytest_super.tasks.paper_item import PaperItem

if TYPE_CHECKING:
    from pytest_super.tasks.task import Task


def snapshot_name(task: Task, length: int, identity: str) -> str:
    """A name that is the same for the same first `length` steps on the same files in the same sandbox."""
    steps = [step.model_dump() for step in task.pre_execute[:length]]
    return digest([FORMAT, identity, repository_of(task), masked_in(task), steps])


def owner_name(task: Task) -> str:
    """A name that is the same for every version of a task. Each owner has at most one snapshot."""
    return digest([task._path, task.whole.id if isinstance(task, PaperItem) else task.id])


def masked_in(task: Task) -> list[str]:
    """The functions that are masked while the prefix runs: for all items of a paper the same."""
    return [one.target for one in task.whole.functions] if isinstance(task, PaperItem) else []


def repository_of(task: Task) -> Any:
    repository = task.repository
    if repository is None or not repository.provide:
        return None
    if repository.path is None:
        return repository.model_dump()
    # A folder is not pinned: its files can change.
    root = task.folder / repository.path
    return [root.name, tree_of(root)]
