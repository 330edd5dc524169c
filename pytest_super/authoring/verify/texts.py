"""What an agent can read before it has done anything: the query, the prefix, the repository."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_super.sources import fetch
from pytest_super.sources.tree import MOST_READ, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task

# A larger file is data, where every number stands somewhere; but notebooks are large by their pictures.
LARGEST = 2**20
LARGEST_NOTEBOOK = 32 * 2**20
PROSE = frozenset({".md", ".rst", ".tex", ".html", ".log", ".out", ".ipynb"})
SKIPPED = frozenset({"__pycache__"})


@dataclass(frozen=True, kw_only=True)
class Text:
    place: str
    text: str
    is_prose: bool = True
    """What people or runs say, in contrast to code and data."""


def prefix_texts(task: Task, steps: Sequence[Step]) -> Iterator[Text]:
    """What is pre-executed; what came of it only where a trial tells."""
    for number, part in enumerate(task.pre_execute, 1):
        text = part.cell or (part.edit.after if part.edit else "")
        yield Text(place=f"the pre-executed step {number}", text=text)
    yield from output_texts(steps)


def output_texts(steps: Sequence[Step]) -> Iterator[Text]:
    for number, step in enumerate(steps, 1):
        yield Text(place=f"the output of the pre-executed step {number}", text=step.observation)


class Repositories:
    """The texts of tasks' repositories; the last one's are kept, for tasks that share one stand together."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._texts: list[Text] = []

    def texts(self, task: Task) -> list[Text]:
        """Raises SuperError or OSError where it cannot be had."""
        assert task.repository is not None
        folder = fetch(task.repository, base=Path(task._path).parent)
        if folder != self._folder:
            self._folder, self._texts = None, []
            self._folder, self._texts = folder, list(repository_texts(folder))
        return self._texts


def repository_texts(folder: Path) -> Iterator[Text]:
    """The text files of a repository, prose first and notebooks cell by cell, of MOST_READ bytes at most.

    Larger files than LARGEST are left out.
    """
    tree, left = Tree(folder), MOST_READ
    for name in sorted(tree.files, key=is_prose, reverse=True):
        most = min(left, LARGEST_NOTEBOOK if name.endswith(".ipynb") else LARGEST)
        size = (folder / name).lstat().st_size
        if SKIPPED.isdisjoint(PurePosixPath(name).parts) and size <= most and is_text(tree, name):
            left -= size
            yield from file_texts(tree.read(name, most), name, f"{folder.name}/{name}")


def is_prose(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return path.suffix in PROSE or path.name.startswith("readme")


def is_text(tree: Tree, name: str) -> bool:
    return b"\0" not in tree.read(name, 8192)


def file_texts(data: bytes, name: str, place: str) -> Iterator[Text]:
    text = data.decode("utf-8", "replace")
    cells = cells_of(text) if name.endswith(".ipynb") else None
    if cells is not None:
        for number, cell in enumerate(cells, 1):
            yield from cell_texts(mapping(cell), place, number)
    elif len(data) <= LARGEST:
        yield Text(place=place, text=text, is_prose=is_prose(name))


def cells_of(text: str) -> list[Any] | None:
    """Those of a notebook, which its format 3 has in worksheets; None of what is no notebook."""
    try:
        notebook = mapping(json.loads(text))
    except (ValueError, RecursionError):
        return None
    sheets = [mapping(sheet) for sheet in sequence(notebook.get("worksheets"))]
    found = [sheet["cells"] for sheet in (notebook, *sheets) if isinstance(sheet.get("cells"), list)]
    return [cell for cells in found for cell in cells] if found else None


def cell_texts(cell: dict[str, Any], place: str, number: int) -> Iterator[Text]:
    """Its source and outputs, without pictures. A part of another form than a notebook's holds no text."""
    yield Text(place=f"{place}, cell {number}", text=joined(cell.get("source", cell.get("input"))))
    for output in sequence(cell.get("outputs")):
        yield Text(place=f"{place}, output of cell {number}", text=output_text(mapping(output)))


def output_text(output: dict[str, Any]) -> str:
    data = mapping(output.get("data"))
    return joined(output.get("text")) + joined(data.get("text/plain", data.get("text/html")))


def joined(text: Any) -> str:
    lines = [text] if isinstance(text, str) else sequence(text)
    return "".join(line for line in lines if isinstance(line, str))


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
