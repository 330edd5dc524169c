"""The public part of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_super.tasks.paper import paper_name

if TYPE_CHECKING:
    from pytest_super.tasks.paper import Experiment, MaskableFunction
    from pytest_super.tasks.task import Limits, Task


@dataclass(frozen=True, kw_only=True)
class MissingFunction:
    """A function whose body is masked."""

    file: str
    """Its path in the repository's folder."""
    name: str
    """Qualified, such as `Model.forward`; with `@part` for a marked region of its lines."""
    description: str
    passage: str
    """What the paper says about it; "" if that is not known."""


@dataclass(frozen=True, kw_only=True)
class PublicExperiment:
    """A command that needs missing functions."""

    name: str
    command: str
    """A line for `sh`, in the repository's folder."""
    description: str
    reported: tuple[str, ...]
    """The names of its values in the agent's report; "" for one without a name."""


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
    missing: tuple[MissingFunction, ...] = ()
    """In the set functions: what is to be written."""
    experiments: tuple[PublicExperiment, ...] = ()
    paper: str | None = None
    """The file with the paper's text in the working directory."""


def public_part(task: Task, folder: str | None = None) -> PublicTask:
    repository = task.repository.model_dump(exclude_none=True, exclude={"provide"}) if task.repository else {}
    return PublicTask(
        id=task.id,
        set=task.set,
        category=task.category,
        query=query_of(task, folder),
        repository=repository,
        folder=folder,
        limits=task.limits,
        missing=tuple(map(missing_function, task.functions)),
        experiments=tuple(map(public_experiment, task.experiments)),
        paper=paper_name(task.paper) if task.paper else None,
    )


def query_of(task: Task, folder: str | None) -> str:
    if not task.functions:
        return task.query
    # Only items of papers need it.
    from pytest_super.tasks.item_text import item_query

    return item_query(task, folder)


def missing_function(one: MaskableFunction) -> MissingFunction:
    return MissingFunction(
        file=one.file, name=one.name, description=one.description.strip(), passage=one.passage.strip()
    )


def public_experiment(one: Experiment) -> PublicExperiment:
    return PublicExperiment(
        name=one.name,
        command=one.command,
        description=(one.description or "").strip(),
        reported=tuple(one.reported),
    )
