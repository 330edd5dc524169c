"""Tables as text."""

from collections.abc import Callable, Iterator, Sequence
from math import inf

from pytest_super.words import shortened

WIDTH = 80
"""The least width of a terminal."""
GAPS = ("  ", " ")
# A table with two columns of texts then fits this width.
CELL_LIMIT = 24


def table_lines(rows: Sequence[Sequence[str]], *, texts: int = 1, width: float = inf) -> Iterator[str]:
    """A line for each row. The first `texts` columns are aligned to the left, the others to the right.

    In a limited `width`, long cells are cut, and columns move together. Those that still do not fit follow in
    another block of lines, which repeats the first `texts` columns.
    """
    columns = [list(column) for column in zip(*rows, strict=True)]
    if width < inf:
        columns = [[shortened(cell, CELL_LIMIT) for cell in column] for column in columns]
    names = [aligned(column, str.ljust) for column in columns[:texts]]
    figures = [aligned(column, str.rjust) for column in columns[texts:]]
    gap = next((gap for gap in GAPS if width_of([*names, *figures], gap) <= width), GAPS[0])
    while figures:
        block = [*names, figures.pop(0)]
        while figures and width_of([*block, figures[0]], gap) <= width:
            block.append(figures.pop(0))
        yield from (gap.join(cells).rstrip() for cells in zip(*block, strict=True))
        if figures:
            yield ""


def aligned(column: Sequence[str], align: Callable[[str, int], str]) -> list[str]:
    width = max(map(len, column))
    return [align(cell, width) for cell in column]


def width_of(columns: Sequence[Sequence[str]], gap: str) -> int:
    return sum(len(column[0]) for column in columns) + len(gap) * (len(columns) - 1)
