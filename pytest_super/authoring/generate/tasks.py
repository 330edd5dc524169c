"""A task of the set auto: its fields, and its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.authoring.generate.refusal import RepositoryRefused
from pytest_super.errors import SuperError, TaskFileError
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import TASK_SUFFIX
from pytest_super.tasks.yaml_writer import to_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.authoring.generate.answers import Proposal

DONE = "There is nothing to report: submit null when the script has run without an error."


def task_fields(
    task_id: str, repository: dict[str, str], folder: str, proposal: Proposal, metadata: dict[str, Any]
) -> dict[str, Any]:
    """`folder` is the name of the repository's folder in the working directory."""
    return {
        "id": task_id,
        "set": "auto",
        "query": f"{proposal.task}\n\n{where(repository, folder)}\n{DONE}\n",
        # Provided, so that the pinned state is what runs.
        "repository": {**repository, "provide": True},
        "entrypoint": {"path": proposal.entrypoint},
        # Packages, data and models are downloaded.
        "sandbox": {"network": True},
        "metadata": metadata,
    }


def where(repository: dict[str, str], folder: str) -> str:
    """Name and place of the repository, worded as in the paper."""
    here = f"in the folder `{folder}/` of the working directory"
    if "git" in repository:
        return f"Git repository: {repository['git']}, at commit {repository['commit']}, {here}."
    if "pypi" in repository:
        return f"Package: {repository['pypi']} {repository['version']}, whose source distribution is {here}."
    return f"The repository is {here}."


def write_task(fields: dict[str, Any], folder: Path) -> bytes:
    """Write the task file, after the loader has accepted it, and return its content.

    Raises RepositoryRefused when the task is not valid, SuperError when the file cannot be written.
    """
    path = folder / f"{fields['id']}{TASK_SUFFIX}"
    # In the same folder, because a task can name a folder next to it; pytest does not collect this name.
    draft = path.with_name(f".{path.name}.draft")
    try:
        data = to_yaml(fields).encode()
        draft.write_bytes(data)
        load_tasks(draft, shown=path.name)
        draft.replace(path)
    except (TaskFileError, ValueError) as error:
        raise RepositoryRefused("bad_answer", f"the task is not valid: {error}") from None
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)
    return data
