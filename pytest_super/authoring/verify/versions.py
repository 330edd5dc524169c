"""Texts that an agent with the network can fetch: other versions of the files of its task's repository."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_super.authoring.verify.texts import (
    LEAST_DIGITS_OF_PROSE,
    Text,
    is_text,
    largest,
    least_digits_of,
    parts_of,
)
from pytest_super.errors import InfrastructureError
from pytest_super.redaction import redacted
from pytest_super.sources import fetch
from pytest_super.sources.history import History, fetched_history
from pytest_super.sources.release import fetch_release, later_releases
from pytest_super.sources.tree import MOST_READ, Tree
from pytest_super.store.user_cache import cache_folder

if TYPE_CHECKING:
    from pytest_super.tasks.task import Repository

# Later releases that are searched, the newest ones: each is a download.
MOST_RELEASES = 5
# Between the path of a file and the commit since which it has its content.
SINCE = " since commit "


def other_versions(repository: Repository, base: Path) -> list[Text]:
    """Texts of the git history, or of later releases, that the pinned version does not have.

    A folder next to the task file has none. Raises SuperError and OSError.
    """
    if repository.path is not None:
        return []
    cache = cache_folder("sources")
    known = contents_of(fetch(repository, base=base))
    if repository.git is not None:
        with fetched_history(repository.git, base=base, cache=cache) as history:
            return list(texts_of_history(history, redacted(repository.git), known))
    return list(texts_of_releases(repository, known, cache))


def texts_of_history(history: History, url: str, known: set[str]) -> Iterator[Text]:
    """The messages, and the files of all commits: the newest first, prose before the rest."""
    for commit, message in history.messages():
        place = f"the message of commit {commit} in {url}"
        yield Text(place=place, text=message, least_digits=LEAST_DIGITS_OF_PROSE)
    files = [file for file in history.files() if file.blob not in known]
    sizes = history.sizes(files)
    chosen, left = [], MOST_READ
    for file in sorted(files, key=lambda one: least_digits_of(one.path)):
        if sizes[file.blob] <= min(left, largest(file.path)):
            left -= sizes[file.blob]
            chosen.append(file)
    for file, data in zip(chosen, history.read(chosen), strict=True):
        if is_text(data):
            yield text_of(f"{file.path}{SINCE}{file.commit} in {url}", file.path, data)


def texts_of_releases(repository: Repository, known: set[str], cache: Path) -> Iterator[Text]:
    project, pinned = repository.pypi or "", repository.version or ""
    left = MOST_READ
    for version, file in later_releases(project, pinned, MOST_RELEASES):
        if file.sha256 is None:
            raise InfrastructureError(f"the package index tells no digest of {file.name}")
        folder = fetch_release(project, version, file.sha256, cache=cache)
        tree = Tree(folder)
        for name in sorted(tree.files, key=least_digits_of):
            data = tree.read(name, min(left, largest(name)) + 1)
            if len(data) <= min(left, largest(name)) and is_text(data) and blob_of(data) not in known:
                left -= len(data)
                yield text_of(f"{name} of the release {project} {version}", name, data)


def text_of(place: str, name: str, data: bytes) -> Text:
    """A file as one text: the cells of a notebook belong together."""
    text = "\n".join(part for _, part in parts_of(data, name))
    return Text(place=place, text=text, least_digits=least_digits_of(name))


def contents_of(folder: Path) -> set[str]:
    """The names that git gives to the contents of the files in a folder."""
    tree = Tree(folder)
    return {blob_of((folder / name).read_bytes()) for name in tree.files}


def blob_of(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
