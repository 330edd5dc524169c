"""Provides research code as a local folder: from the package index, from git, or from next to the task file.

It is fetched once into a cache that is addressed by content (the archive's sha256, the commit). A second run
needs no network, and workers can fetch at the same time. None of the code is run.
"""

from __future__ import annotations

from pathlib import Path

from pytest_super.store.user_cache import cache_folder
from pytest_super.tasks.task import Repository


def fetch(repository: Repository, *, base: Path, cache: Path | None = None) -> Path:
    """A folder with the repository's files, named after the project. The caller must not change it.

    `base` is the folder of the task file; `cache` is by default the user's cache folder. Raises
    InfrastructureError when the source cannot be fetched or differs from the task's pins, TaskFileError for a
    `path` that is missing or contains tasks or solutions.
    """
    cache = cache_folder("sources") if cache is None else cache
    if repository.path is not None:
        from pytest_super.sources.beside import check_folder

        return check_folder(base, repository.path)
    if repository.git is not None and repository.commit is not None:
        from pytest_super.sources.git import fetch_commit

        return fetch_commit(repository.git, repository.commit, base=base, cache=cache)
    from pytest_super.sources.release import fetch_release

    if repository.pypi is None or repository.version is None or repository.sha256 is None:
        raise ValueError("a repository needs git and commit, or pypi, version and sha256, or path")
    return fetch_release(repository.pypi, repository.version, repository.sha256, cache=cache)
