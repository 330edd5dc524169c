"""The cells of the gold solution, from the task file or from the notebook next to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.errors import TaskFileError
from pytest_super.tasks.notebook import cell_source, notebook_cells

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.tasks.task import Solution


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
        found.append(
            SolutionCell(
                number=len(found) + 1,
                source=cell_source(cell),
                id=text_or_none(cell.get("id")),
                tags=tags_of(cell),
                note=note,
                has_failed=has_error(cell),
            )
        )
        note = ""
    return found


def has_error(cell: dict[str, Any]) -> bool:
    outputs = cell.get("outputs") or []
    return any(isinstance(output, dict) and output.get("output_type") == "error" for output in outputs)


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def tags_of(cell: dict[str, Any]) -> tuple[str, ...]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
