"""A trajectory as a notebook that opens in Jupyter: thought, action and output of each step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_super.store.atomic_write import write_atomically
from pytest_super.store.json_lines import disk_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.task import Task

Cell = dict[str, Any]

NOTEBOOK = "trajectory.ipynb"


def write_notebook(folder: Path, task: Task, steps: list[Step]) -> None:
    """Write trajectory.ipynb (nbformat 4.5) into the trial's folder."""
    cells = [markdown("query", f"# {task.id}\n\n{quoted(task.query)}")]
    for step in steps:
        cells += step_cells(step)
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    # ASCII, because outputs can contain lone surrogates, which UTF-8 cannot encode.
    with disk_errors(folder):
        write_atomically(folder / NOTEBOOK, json.dumps(notebook, indent=1))


def step_cells(step: Step) -> Iterator[Cell]:
    title = f"**Step {step.number}** ({step.action.type}, {step.outcome}, {step.seconds:.1f} s)"
    if step.origin == "pre_execute":
        title += " pre-executed"
    yield markdown(f"step-{step.number}", "\n\n".join(part for part in (title, quoted(step.thought)) if part))
    if step.action.type == "execute":
        yield code(f"cell-{step.number}", step)
    else:
        text = "\n\n".join(part for part in (step.action.content, step.observation) if part)
        yield raw(f"action-{step.number}", text)


def quoted(text: str) -> str:
    """Text that others wrote, indented as a block without markup."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def markdown(name: str, source: str) -> Cell:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def raw(name: str, source: str) -> Cell:
    return {"cell_type": "raw", "id": name, "metadata": {}, "source": source}


def code(name: str, step: Step) -> Cell:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "source": step.action.content,
        "execution_count": None,
        "outputs": step.outputs,
    }
