"""The public part of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.tasks.task import Limits, Task


@dataclass(frozen=True, kw_only=True)
class PublicTask:
    """The part of a task that an agent is allowed to know: no answer, no landmarks, no solution."""

    id: str
    set: str
    category: str | None
    query: str
    repository: dict[str, str]
    """`git` and `commit`, or `pypi`, `version` and `sha256`, or `path`."""
    folder: str | None
    """The folder of the provided repository, in the working directory; None if it is not provided."""
    limits: Limits


def public_part(task: Task, folder: str | None = None) -> PublicTask:
    repository = task.repository.model_dump(exclude_none=True, exclude={"provide"}) if task.repository else {}
    return PublicTask(
        id=task.id,
        set=task.set,
        category=task.category,
        query=task.query,
        repository=repository,
        folder=folder,
        limits=task.limits,
    )
