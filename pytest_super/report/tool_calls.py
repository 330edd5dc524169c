"""A program's calls of its tools as people read them: the arguments as texts, and the time between calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from pytest_super.store.trajectory import TOOL_CALL, Step


def content_of(step: Step) -> str:
    """The content of a step's action. A call's is the name of the tool, and each argument in a new line."""
    if step.action.type != TOOL_CALL:
        return step.action.content
    try:
        call = json.loads(step.action.content)
        return "\n".join([str(call["name"]), *argument_lines(call["arguments"])])
    except (ValueError, RecursionError, KeyError, TypeError):
        return step.action.content


def argument_lines(arguments: Any) -> Iterator[str]:
    """Programs send arguments as the JSON of a mapping. Raises ValueError and RecursionError."""
    given = json.loads(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(given, dict):
        yield shown(given)
        return
    for name, value in given.items():
        text = shown(value)
        yield f"{name}:\n{text}" if "\n" in text else f"{name}: {text}"


def shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pauses(steps: Sequence[Step]) -> dict[int, float]:
    """The seconds from the beginning of the step before to that of each call, by the number of the call."""
    found = {}
    for earlier, later in pairwise(steps):
        if later.action.type == TOOL_CALL:
            try:
                passed = datetime.fromisoformat(later.started) - datetime.fromisoformat(earlier.started)
                found[later.number] = passed.total_seconds()
            except (ValueError, TypeError):
                # Without a time, or with one that has no zone.
                continue
    return found
