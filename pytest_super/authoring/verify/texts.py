"""Texts that an agent can read: the prefix, the repository, and other versions of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_super.errors import InfrastructureError
from pytest_super.metrics.distinctive import LEAST_DIGITS
from pytest_super.redaction import redacted
from pytest_super.sources import fetch
from pytest_super.sources.history import History, fetched_history
from pytest_super.sources.release import fetch_release, later_releases
from pytest_super.sources.tree import MOST_READ, Tree
from pytest_super.store.trajectory import Step
from pytest_super.store.user_cache import cache_folder
from pytest_super.tasks.solution import NotebookError, cell_source, read_cells
from pytest_super.tasks.task import Repository, Task

# A larger file is data. Notebooks are large because of their pictures.
LARGEST = 2**20
LARGEST_NOTEBOOK = 32 * 2**20
PROSE = frozenset({".md", ".rst", ".tex", ".html", ".log", ".out", ".ipynb"})
# Logs and documentation have any number of three digits by chance, tables of four.
LEAST_DIGITS_OF_PROSE = 4
LEAST_DIGITS_OF_DATA = 5


@dataclass(frozen=True, kw_only=True)
class Text:
    place: str
    text: str
    least_digits: int = LEAST_DIGITS

    @property
    def is_prose(self) -> bool:
        """Whether it was written by people or printed by runs, unlike code and data."""
        return self.least_digits < LEAST_DIGITS_OF_DATA


def prefix_texts(task: Task) -> Iterator[Text]:
    """The pre-executed cells and edits."""
    for number, part in enumerate(task.pre_execute, 1):
        text = part.cell or (part.edit.after if part.edit else "")
        yield Text(place=f"the pre-executed step {number}", text=text)


def output_texts(steps: Sequence[Step]) -> Iterator[Text]:
    """The output of the pre-executed steps of a trial."""
    for number, step in enumerate(steps, 1):
        place = f"the output of the pre-executed step {number}"
        yield Text(place=place, text=step.observation, least_digits=LEAST_DIGITS_OF_PROSE)


def repository_texts(folder: Path) -> list[Text]:
    """The text files of a repository, prose first and notebooks cell by cell, at most MOST_READ bytes."""
    texts: list[Text] = []
    tree, left = Tree(folder), MOST_READ
    # The sort is stable: within READMEs, other prose and the rest, files near the top stay first.
    for name in sorted(tree.files, key=least_digits_of):
        most = min(left, largest(name))
        size = (folder / name).lstat().st_size
        if size <= most and is_text(tree.read(name, 8192)):
            left -= size
            place, least_digits = f"{folder.name}/{name}", least_digits_of(name)
            for part, text in parts_of(tree.read(name, most), name):
                texts.append(Text(place=place + part, text=text, least_digits=least_digits))
    return texts


def largest(name: str) -> int:
    """Bytes of the largest file with this name that is read."""
    return LARGEST_NOTEBOOK if name.endswith(".ipynb") else LARGEST


def least_digits_of(name: str) -> int:
    path = PurePosixPath(name.lower())
    if path.name.startswith("readme"):
        return LEAST_DIGITS
    return LEAST_DIGITS_OF_PROSE if path.suffix in PROSE else LEAST_DIGITS_OF_DATA


def is_text(data: bytes) -> bool:
    return b"\0" not in data[:8192]


def parts_of(data: bytes, name: str) -> Iterator[tuple[str, str]]:
    """The places and texts in a file: of a readable notebook the source and outputs of cells, no pictures."""
    text = data.decode("utf-8", "replace")
    if name.endswith(".ipynb"):
        try:
            cells = read_cells(text)
        except NotebookError:
            pass
        else:
            for number, cell in enumerate(cells, 1):
                yield f", cell {number}", cell_source(cell)
                for output in cell.get("outputs") or ():
                    yield f", output of cell {number}", output_text(output)
            return
    # A notebook that cannot be read was allowed to be larger than other texts.
    if len(data) <= LARGEST:
        yield "", text


def output_text(output: Any) -> str:
    """The text of an nbformat output; "" for anything else."""
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    shown = data.get("text/plain", data.get("text/html")) if isinstance(data, dict) else ""
    return joined(output.get("text")) + joined(shown)


def joined(text: Any) -> str:
    lines = text if isinstance(text, list) else [text]
    return "".join(line for line in lines if isinstance(line, str))


# Later releases that are searched, the newest ones: each is a download.
MOST_RELEASES = 5
# Between the path of a file and the commit since which it has its content.
SINCE = " since commit "


def other_versions(repository: Repository, base: Path) -> list[Text]:
    """Texts of the git history, or of later releases, that the pin lacks. Raises SuperError and OSError."""
    if repository.path is not None:
        return []
    cache = cache_folder("sources")
    folder = fetch(repository, base=base)
    known = {blob_of((folder / name).read_bytes()) for name in Tree(folder).files}
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
        tree = Tree(fetch_release(project, version, file.sha256, cache=cache))
        for name in sorted(tree.files, key=least_digits_of):
            data = tree.read(name, min(left, largest(name)) + 1)
            if len(data) <= min(left, largest(name)) and is_text(data) and blob_of(data) not in known:
                left -= len(data)
                yield text_of(f"{name} of the release {project} {version}", name, data)


def text_of(place: str, name: str, data: bytes) -> Text:
    """A file as one text: the cells of a notebook belong together."""
    text = "\n".join(part for _, part in parts_of(data, name))
    return Text(place=place, text=text, least_digits=least_digits_of(name))


def blob_of(data: bytes) -> str:
    """The name that git gives to the content of a file."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
