"""Texts that an agent can read before it acts: the prefix and the repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_super.sources.tree import MOST_READ, Tree
from pytest_super.tasks.notebook import NotebookError, cell_source, read_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task

# A larger file is data. Notebooks are large because of their pictures.
LARGEST = 2**20
LARGEST_NOTEBOOK = 32 * 2**20
PROSE = frozenset({".md", ".rst", ".tex", ".html", ".log", ".out", ".ipynb"})
SKIPPED = frozenset({"__pycache__"})


@dataclass(frozen=True, kw_only=True)
class Text:
    place: str
    text: str
    is_prose: bool = True
    """Written by people or printed by runs, unlike code and data."""


def prefix_texts(task: Task, steps: Sequence[Step]) -> Iterator[Text]:
    """The pre-executed cells and edits, and the output of `steps`, the pre-executed steps of a trial."""
    for number, part in enumerate(task.pre_execute, 1):
        text = part.cell or (part.edit.after if part.edit else "")
        yield Text(place=f"the pre-executed step {number}", text=text)
    yield from output_texts(steps)


def output_texts(steps: Sequence[Step]) -> Iterator[Text]:
    for number, step in enumerate(steps, 1):
        yield Text(place=f"the output of the pre-executed step {number}", text=step.observation)


def repository_texts(folder: Path) -> list[Text]:
    """The text files of a repository, prose first and notebooks cell by cell, at most MOST_READ bytes."""
    texts: list[Text] = []
    tree, left = Tree(folder), MOST_READ
    # The sort is stable: within prose and the rest, files near the top stay first.
    for name in sorted(tree.files, key=is_prose, reverse=True):
        most = min(left, LARGEST_NOTEBOOK if name.endswith(".ipynb") else LARGEST)
        size = (folder / name).lstat().st_size
        if SKIPPED.isdisjoint(PurePosixPath(name).parts) and size <= most and is_text(tree, name):
            left -= size
            texts += file_texts(tree.read(name, most), name, f"{folder.name}/{name}")
    return texts


def is_prose(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return path.suffix in PROSE or path.name.startswith("readme")


def is_text(tree: Tree, name: str) -> bool:
    return b"\0" not in tree.read(name, 8192)


def file_texts(data: bytes, name: str, place: str) -> Iterator[Text]:
    """A file that is named as a notebook but cannot be read as one is a text like any other."""
    text = data.decode("utf-8", "replace")
    if name.endswith(".ipynb"):
        try:
            cells = read_cells(text)
        except NotebookError:
            pass
        else:
            for number, cell in enumerate(cells, 1):
                yield from cell_texts(cell, place, number)
            return
    # A notebook that cannot be read was allowed to be larger than other texts.
    if len(data) <= LARGEST:
        yield Text(place=place, text=text, is_prose=is_prose(name))


def cell_texts(cell: dict[str, Any], place: str, number: int) -> Iterator[Text]:
    """The source and the outputs of a cell, without pictures."""
    yield Text(place=f"{place}, cell {number}", text=cell_source(cell))
    for output in cell.get("outputs") or ():
        yield Text(place=f"{place}, output of cell {number}", text=output_text(output))


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
