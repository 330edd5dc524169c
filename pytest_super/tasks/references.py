"""Finds the cells of a solution that a task file refers to: by number, id or tag."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_super.tasks.solution import SolutionCell


class UnknownCellError(Exception):
    """A reference names no cell, or several where one is needed; the text suggests similar names."""


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
