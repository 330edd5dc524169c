"""A task of the set auto: its fields, and its file."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.generate.refusal import RepositoryRefused
from pytest_super.authoring.task_text import task_text
from pytest_super.errors import SuperError
from pytest_super.store.atomic_write import write_atomically

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


def write_task(fields: dict[str, Any], path: Path) -> str:
    """Write the task file if the loader accepts its text. Returns the digest of the file.

    Raises RepositoryRefused when the task is not valid, SuperError when the file cannot be written.
    """
    try:
        text = task_text(fields, path)
        write_atomically(path, text)
    except ValueError as error:
        raise RepositoryRefused("bad_answer", f"the task is not valid: {error}") from None
    except OSError as error:
        raise SuperError(f"{path} cannot be written: {error.strerror}") from None
    return hashlib.sha256(text.encode()).hexdigest()
