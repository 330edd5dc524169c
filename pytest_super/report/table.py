"""Tables as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def table_lines(rows: Sequence[Sequence[str]], *, texts: int = 1) -> Iterator[str]:
    """A line for each row. The first `texts` columns are aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:texts], widths[:texts], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row[texts:], widths[texts:], strict=True)]
        yield "  ".join([*left, *right]).rstrip()
