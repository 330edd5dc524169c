"""The cells of notebooks, and of the gold solution, from the task file or from the notebook next to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_super.errors import TaskFileError
from pytest_super.reading import read_bytes
from pytest_super.tasks.task import Solution


def notebook_cells(path: Path) -> list[dict[str, Any]]:
    """The cells that are not empty, as nbformat defines them. Raises TaskFileError if none has code."""
    try:
        cells = [cell for cell in read_cells(read_bytes(path)) if cell_source(cell).strip()]
    except OSError as error:
        raise TaskFileError(f"the notebook {path} cannot be read: {error.strerror}") from None
    except NotebookError as error:
        raise TaskFileError(f"{path} is not a notebook: {error}") from None
    if all(cell["cell_type"] != "code" for cell in cells):
        raise TaskFileError(f"the notebook {path} has no code cells")
    return cells


class NotebookError(Exception):
    """A text is not a notebook of nbformat 4; the message says why."""


def read_cells(text: str | bytes) -> list[dict[str, Any]]:
    """All cells of a notebook, from its JSON text. Raises NotebookError."""
    try:
        notebook = json.loads(text)
        version, cells = notebook.get("nbformat"), notebook.get("cells")
    except (ValueError, AttributeError, RecursionError):
        raise NotebookError("it is not a JSON object") from None
    if version != 4:
        found = f"the notebook format {version}" if version else "no `nbformat`"
        raise NotebookError(f"it has {found}: save it as format 4")
    if not isinstance(cells, list):
        raise NotebookError("it has no list `cells`")
    for number, cell in enumerate(cells, 1):
        if problem := problem_of(cell):
            raise NotebookError(f"cell {number} {problem}")
    return cells


def problem_of(cell: object) -> str | None:
    """The first field required by nbformat that is missing or wrong; None for a valid cell."""
    if not isinstance(cell, dict):
        return "is not a JSON object"
    if not isinstance(cell.get("cell_type"), str):
        return "has no `cell_type`"
    source = cell.get("source")
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        return "has no `source`"
    if cell.get("outputs") is not None and not isinstance(cell["outputs"], list):
        return "has `outputs` that are not a list"
    return None


def cell_source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


@dataclass(frozen=True)
class GoldCells:
    """Code cells in order, and the index of the one whose value is the answer."""

    cells: list[str]
    answer: int


@dataclass(frozen=True, kw_only=True)
class SolutionCell:
    number: int
    """Position among the code cells, from 1."""
    source: str
    id: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    """The Markdown cell right before it."""
    has_failed: bool = False
    """Whether the notebook stores an error as its output."""


def read_solution(solution: Solution, folder: Path) -> GoldCells:
    """The cells of a solution; `folder` is the folder of the task file. Raises TaskFileError."""
    if solution.notebook is None:
        # Without SolutionCells: every task that is collected is read here, and making them takes time.
        sources = solution.cells or []
    else:
        sources = [cell.source for cell in cells_of(folder / solution.notebook)]
    return GoldCells(sources, answer_index(solution, len(sources)))


def answer_index(solution: Solution, count: int) -> int:
    """The index of the answer's cell among `count` cells. Raises TaskFileError if there is no such cell."""
    answer = solution.answer_cell or count
    if answer > count:
        raise TaskFileError(f"answer_cell is {answer}, but there are {count} code cells")
    return answer - 1


def solution_cells(solution: Solution, folder: Path) -> list[SolutionCell]:
    """Raises TaskFileError when the notebook cannot be read."""
    if solution.notebook is not None:
        return cells_of(folder / solution.notebook)
    return [SolutionCell(number=number, source=text) for number, text in enumerate(solution.cells or (), 1)]


def cells_of(notebook: Path) -> list[SolutionCell]:
    """Raises TaskFileError when the notebook cannot be read."""
    found: list[SolutionCell] = []
    note = ""
    for cell in notebook_cells(notebook):
        if cell["cell_type"] != "code":
            note = cell_source(cell) if cell["cell_type"] == "markdown" else ""
            continue
        outputs = cell.get("outputs") or []
        has_failed = any(isinstance(one, dict) and one.get("output_type") == "error" for one in outputs)
        found.append(
            SolutionCell(
                number=len(found) + 1,
                source=cell_source(cell),
                id=cell["id"] if isinstance(cell.get("id"), str) else None,
                tags=tags_of(cell),
                note=note,
                has_failed=has_failed,
            )
        )
        note = ""
    return found


def tags_of(cell: dict[str, Any]) -> tuple[str, ...]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
