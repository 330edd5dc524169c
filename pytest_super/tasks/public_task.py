"""The public part of a task, and what an agent is told about an item of a paper."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_super.tasks.paper import files_of, paper_name
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
        query="\n".join(query_lines(task, folder)) if task.functions else task.query,
        repository=repository,
        folder=folder,
        limits=task.limits,
        missing=tuple(
            MissingFunction(
                file=one.file, name=one.name, description=one.description.strip(), passage=one.passage.strip()
            )
            for one in task.functions
        ),
        experiments=tuple(
            PublicExperiment(
                name=one.name,
                command=one.command,
                description=(one.description or "").strip(),
                reported=tuple(one.reported),
            )
            for one in task.experiments
        ),
        paper=paper_name(task.paper) if task.paper else None,
    )


def query_lines(task: Task, folder: str | None) -> Iterator[str]:
    """The paper's query, what is missing in the repository's folder, and how it is graded."""
    yield task.query.rstrip()
    yield ""
    where = f"the folder `{folder}`" if folder else "the repository"
    yield f"In {where}, functions are missing: their bodies are replaced by stubs. Write these bodies:"
    for one in task.functions:
        name, _, region = one.name.partition("@")
        what = f"the lines of the region `{region}` in `{name}`" if region else f"`{name}`"
        about = f": {one.description.strip()}" if one.description else ""
        yield f"- {what} in `{one.file}`{about}"
    if task.paper:
        yield f"The paper is in the file `{paper_name(task.paper)}` in the working directory."
    yield ""
    yield f"These experiments need them. Their commands are run in {where}:"
    for experiment in task.experiments:
        about = f" {experiment.description.strip()}" if experiment.description else ""
        yield f"- {experiment.name}: `{experiment.command}`{about}"
    yield ""
    files = ", ".join(f"`{file}`" for file in files_of(task.functions))
    yield f"Your work is graded by running them again in a fresh copy, with only {files} from yours."
    if reported := {one.name: list(one.reported) for one in task.experiments if one.reported}:
        yield "Submit the results that you get as JSON, each … replaced by a value:"
        # `{"experiment": "…"}`, or `{"experiment": {"value": "…"}}`.
        form = {name: "…" if own == [""] else dict.fromkeys(own, "…") for name, own in reported.items()}
        yield json.dumps(form, ensure_ascii=False)
