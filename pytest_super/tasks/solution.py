"""The gold solution's cells, from the task file or from the notebook next to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.errors import TaskFileError

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.tasks.task import Solution


@dataclass(frozen=True)
class GoldCells:
    """Code cells in order, and the index of the one whose value is the answer."""

    cells: list[str]
    answer: int


def read_solution(solution: Solution, folder: Path) -> GoldCells:
    """The cells of a solution; `folder` holds the task file. Raises TaskFileError."""
    if solution.cells is not None:
        cells = list(solution.cells)
    else:
        assert solution.notebook is not None
        cells = read_notebook(folder / solution.notebook)
    answer = solution.answer_cell or len(cells)
    if answer > len(cells):
        raise TaskFileError(f"answer_cell is {answer}, but there are {len(cells)} code cells")
    return GoldCells(cells, answer - 1)


def read_notebook(path: Path) -> list[str]:
    return [cell_source(cell) for cell in notebook_cells(path) if cell["cell_type"] == "code"]


def notebook_cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook that are not empty, as nbformat has them.

    Raises TaskFileError, also where no code cell is left.
    """
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if notebook["nbformat"] != 4:
            raise TaskFileError(f"{path} has notebook format {notebook['nbformat']}: save it as format 4")
        for number, cell in enumerate(notebook["cells"], 1):
            if trouble := trouble_of(cell):
                raise TaskFileError(f"{path} is not a notebook: cell {number} {trouble}")
        cells = [cell for cell in notebook["cells"] if cell_source(cell).strip()]
    except OSError as error:
        raise TaskFileError(f"the notebook {path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TaskFileError(f"{path} is not a notebook: {error!r}") from None
    if all(cell["cell_type"] != "code" for cell in cells):
        raise TaskFileError(f"the notebook {path} has no code cells")
    return cells


def trouble_of(cell: object) -> str | None:
    """What a cell lacks of what nbformat says of all of them; None where it lacks nothing."""
    if not isinstance(cell, dict):
        return "is no JSON object"
    if not isinstance(cell.get("cell_type"), str):
        return "has no `cell_type`"
    source = cell.get("source")
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        return "has no `source`"
    if cell.get("outputs") is not None and not isinstance(cell["outputs"], list):
        return "is no code cell with a list of `outputs`"
    return None


def cell_source(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)
