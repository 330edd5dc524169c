"""The pre-executed cells of a row: JSON texts of `{"type": …, "content": …}`, the form of agents' actions."""

from __future__ import annotations

import json
from typing import Any

from pytest_super.agents.react.format import FormatError, parse_edit
from pytest_super.authoring.importing.refusal import NoTaskError, Warn


def pre_executed(left: dict[str, Any], warn: Warn) -> list[Any]:
    """The cells and edits of the prefix."""
    cells = left.get("pre_execute_cells")
    if cells is None:
        left.pop("pre_execute_cells", None)
        return []
    if not isinstance(cells, list):
        raise NoTaskError("`pre_execute_cells` should be a list")
    made = [step(cell, f"pre_execute_cells[{index}]", warn) for index, cell in enumerate(cells)]
    found = [part for part in made if part is not None]
    # Otherwise `metadata` keeps the cells as they were.
    if len(found) == len(cells):
        left.pop("pre_execute_cells")
    return found


def step(cell: Any, place: str, warn: Warn) -> str | dict[str, Any] | None:
    """The text of a cell, an edit, or None for a step that has no effect. Raises NoTaskError."""
    if not isinstance(cell, str):
        raise NoTaskError(f"`{place}` should be the JSON text of an object with `type` and `content`")
    action = action_of(cell)
    if action is None:
        warn(f"`{place}` is not an action: it is imported as a cell")
        action = {"content": cell}
    kind, content = action.get("type", "execute"), action.get("content")
    if kind == "continue_wait":
        warn(f"`{place}` is a continue_wait: left out, since each cell runs to its end")
        return None
    if kind not in ("execute", "edit") or not isinstance(content, str):
        raise NoTaskError(f"`{place}` is not a known action: type {kind!r}")
    if not content.strip():
        warn(f"`{place}` is empty: left out")
        return None
    return content if kind == "execute" else {"edit": edit(content, place)}


def action_of(text: str) -> dict[str, Any] | None:
    """The action that the JSON text is; None for any other text, even if it is JSON: `[1]` is Python, too."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_action = isinstance(value, dict) and not value.keys().isdisjoint(("type", "content"))
    return value if is_action else None


def edit(content: str, place: str) -> dict[str, str]:
    try:
        # The published grammar does not allow a line end at the end.
        change = parse_edit(content.rstrip("\n"))
    except FormatError as error:
        raise NoTaskError(f"`{place}` is not an edit: {str(error).splitlines()[0]}") from None
    if not change.before:
        raise NoTaskError(f"`{place}` is an edit that replaces nothing")
    return {"path": change.path, "before": change.before, "after": change.after}
