"""The cells of a solution, and how a task file refers to them: by number, id or tag."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.tasks.solution import cell_source, notebook_cells

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_super.tasks.task import Solution


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


class UnknownCellError(Exception):
    """A reference names no cell, or several where one is needed; the text suggests similar names."""


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


def find_cells(cells: Sequence[SolutionCell], reference: int | str) -> list[int]:
    """Indices of the cells with this number, id or tag; an id wins over a tag. Raises UnknownCellError."""
    if isinstance(reference, int):
        if reference > len(cells):
            raise UnknownCellError(f"there is no cell {reference}: the solution has {len(cells)} code cells")
        return [reference - 1]
    by_id = [index for index, cell in enumerate(cells) if cell.id == reference]
    found = by_id or [index for index, cell in enumerate(cells) if reference in cell.tags]
    if not found:
        raise UnknownCellError(f"no cell has the id or tag `{reference}`{nearest(cells, reference)}")
    return found


def find_cell(cells: Sequence[SolutionCell], reference: int | str) -> int:
    """The index of one cell. Raises UnknownCellError, also when several cells have the tag."""
    found = find_cells(cells, reference)
    if len(found) > 1:
        numbers = ", ".join(str(index + 1) for index in found)
        raise UnknownCellError(f"`{reference}` means the cells {numbers}, where one is needed")
    return found[0]


def nearest(cells: Sequence[SolutionCell], reference: str) -> str:
    known = list(dict.fromkeys(name for cell in cells for name in (cell.id, *cell.tags) if name))
    close = difflib.get_close_matches(reference, known, n=3)
    if close:
        return f"; did you mean {' or '.join(f'`{name}`' for name in close)}?"
    return f"; known are {', '.join(known[:20])}" if known else "; its cells have numbers only"
