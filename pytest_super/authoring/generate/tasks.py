"""A task of the set auto, as the fields and the text of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.authoring.generate.refusal import Refused
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
    """`folder` is the repository's in the working directory."""
    return {
        "id": task_id,
        "set": "auto",
        "query": f"{proposal.task}\n\n{where(repository, folder)}\n{DONE}\n",
        # Provided, so that what is run is what is pinned.
        "repository": {**repository, "provide": True},
        "entrypoint": {"path": proposal.entrypoint},
        # Packages, data and models come from there.
        "sandbox": {"network": True},
        "metadata": metadata,
    }


def where(repository: dict[str, str], folder: str) -> str:
    """What it is, in the paper's manner, and where it lies."""
    here = f"in the folder `{folder}/` of the working directory"
    if "git" in repository:
        return f"Git repository: {repository['git']}, at commit {repository['commit']}, {here}."
    if "pypi" in repository:
        return f"Package: {repository['pypi']} {repository['version']}, whose source distribution is {here}."
    return f"The repository is {here}."


def write_task(fields: dict[str, Any], folder: Path) -> bytes:
    """The content of the task's file, once it is there and the loader has taken it.

    Raises Refused for what makes no valid task, SuperError where it cannot be written.
    """
    path = folder / f"{fields['id']}{TASK_SUFFIX}"
    # Beside it, since a task may name a folder beside it; with a name that is not collected.
    draft = path.with_name(f".{path.name}.draft")
    try:
        data = to_yaml(fields).encode()
        draft.write_bytes(data)
        load_tasks(draft, shown=path.name)
        draft.replace(path)
    except (TaskFileError, ValueError) as error:
        raise Refused("bad_answer", f"it makes no valid task: {error}") from None
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)
    return data
