"""A trial as a notebook that opens in Jupyter: its figures, then thought, action and output of each step.

It contains the gold answer, so it is only written into the folder of the run's results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from pytest_super.report.facts import facts_of
from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors
from pytest_super.store.results import TrialResult, result_fields
from pytest_super.store.step_values import submitted_text
from pytest_super.store.trajectory import TOOL_CALL, Step
from pytest_super.tasks.task import Task
from pytest_super.words import named, one_line

Cell = dict[str, Any]

NOTEBOOK = "trajectory.ipynb"
# Before its value in the text of a notebook: a field of the metadata, by its indentation.
TOLD = '\n  "pytest_super": '
VALUE_LIMIT = 2000
MOST_FILES = 20


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a notebook has of its trial's task: texts that are stored nowhere else."""

    query: str | None = None
    expected: str | None = None
    """The gold answer as JSON, clipped; None if the task has none."""


def write_notebook(folder: Path, task: Task, result: TrialResult, steps: list[Step]) -> None:
    """Write trajectory.ipynb (nbformat 4.5) into the trial's folder."""
    answer = json.dumps(task.answer, ensure_ascii=False) if task.has_answer else None
    told = Told(query=task.query, expected=answer and one_line(answer, VALUE_LIMIT))
    figures = list(figures_of(told, result, steps))
    width = max(len(name) for name, _ in figures)
    lines = "\n".join(f"{name:{width}}  {one_line(value, VALUE_LIMIT)}" for name, value in figures)
    cells = [
        cell("markdown", "figures", f"# {result.name}\n\n{quoted(lines)}"),
        cell("markdown", "query", f"**Query**\n\n{quoted(task.query)}"),
    ]
    after = pauses(steps)
    for step in steps:
        cells += step_cells(step, after.get(step.number))
    if result.agent_error:
        cells.append(cell("raw", "agent-error", result.agent_error))
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "pytest_super": vars(told),
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    # ASCII, because outputs can contain lone surrogates, which UTF-8 cannot encode.
    with disk_errors(folder):
        write_atomically(folder / NOTEBOOK, json.dumps(notebook, indent=1))


def told_in(notebook: str) -> Told:
    """What `write_notebook` has written of the task, without parsing the rest. Raises one of UNREADABLE."""
    told, _ = json.JSONDecoder().raw_decode(notebook.rpartition(TOLD)[2])
    return Told(query=str(told["query"]), expected=told["expected"] and str(told["expected"]))


def figures_of(told: Told, result: TrialResult, steps: list[Step]) -> Iterator[tuple[str, str]]:
    """How the trial went, each value on one line of bounded length."""
    submitted = submitted_text(steps)
    yield "expected", told.expected or "unknown"
    yield "submitted", "nothing" if submitted is None else submitted
    yield from facts_of(result, [field for field in result_fields() if field.notebook])


def step_cells(step: Step, pause: float | None) -> Iterator[Cell]:
    """`pause` is the time in seconds since the step before, for a call of a program's tool."""
    time = f"{step.seconds:.1f} s" if pause is None else f"{pause:.1f} s after the step before"
    title = f"**Step {step.number}** ({step.action.type}, {step.outcome}, {time})"
    if step.origin == "pre_execute":
        title += " pre-executed"
    told = "\n\n".join(part for part in (title, quoted(step.thought)) if part)
    yield cell("markdown", f"step-{step.number}", told)
    if step.action.type == "execute":
        name = f"cell-{step.number}"
        yield cell("code", name, step.action.content, execution_count=None, outputs=step.outputs)
    else:
        changed = f"changed files: {named(list(step.files), MOST_FILES)}" if step.files else ""
        text = "\n\n".join(part for part in (content_of(step), step.observation, changed) if part)
        yield cell("raw", f"action-{step.number}", text)


def quoted(text: str) -> str:
    """Text that others wrote, indented as a block without markup."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def cell(kind: str, name: str, source: str, **more: Any) -> Cell:
    return {"cell_type": kind, "id": name, "metadata": {}, "source": source, **more}


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
