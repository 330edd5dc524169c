"""Texts that an agent can read before it acts: the prefix and the repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_super.metrics.distinctive import LEAST_DIGITS
from pytest_super.sources.tree import MOST_READ, Tree
from pytest_super.store.trajectory import Step
from pytest_super.tasks.solution import NotebookError, cell_source, read_cells

if TYPE_CHECKING:
    from pytest_super.tasks.task import Task

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
    """The places and texts in a file: of a notebook the source and outputs of each cell, without pictures.

    A file that is named as a notebook but cannot be read as one is a text like any other.
    """
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
