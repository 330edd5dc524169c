"""Reads the cells of notebooks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_super.errors import TaskFileError

if TYPE_CHECKING:
    from pathlib import Path


def notebook_cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook that are not empty, as nbformat defines them.

    Raises TaskFileError, for a notebook without code cells, too.
    """
    try:
        text = path.read_text(encoding="utf-8")
        cells = [cell for cell in read_cells(text) if cell_source(cell).strip()]
    except OSError as error:
        raise TaskFileError(f"the notebook {path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, NotebookError) as error:
        raise TaskFileError(f"{path} is not a notebook: {error}") from None
    if all(cell["cell_type"] != "code" for cell in cells):
        raise TaskFileError(f"the notebook {path} has no code cells")
    return cells


class NotebookError(Exception):
    """A text is not a notebook of nbformat 4; the message says why."""


def read_cells(text: str) -> list[dict[str, Any]]:
    """All cells of a notebook, from its JSON text. Raises NotebookError."""
    try:
        notebook = json.loads(text)
        if notebook["nbformat"] != 4:
            raise NotebookError(f"it has the notebook format {notebook['nbformat']}: save it as format 4")
        cells = list(notebook["cells"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotebookError(repr(error)) from None
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
