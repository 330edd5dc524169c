"""Refuses gates on figures that no task has, before the first trial is paid for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from pytest_super.errors import SuperError
from pytest_super.gate.fail_under import FailUnder
from pytest_super.gate.figures import names_of_figures
from pytest_super.metrics.registry import REFERENCE
from pytest_super.option_values import ini_value
from pytest_super.session.run import RUN
from pytest_super.session.start.collection import STATED
from pytest_super.session.start.selection import is_wanted
from pytest_super.session.trial.item import TaskItem
from pytest_super.session.trial.scoring import ON_COMMAND_LINE, SCORING, source_of_gates
from pytest_super.session.trial.start_ahead import OUTCOMES
from pytest_super.tasks.combinations import Items
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import TASK_SUFFIX, Task


def refuse_missing_figures(config: pytest.Config, items: Iterable[TaskItem]) -> None:
    """Raises SuperError for a gate of the command line on a figure that no trial of the items can have.

    A gate of the ini file is refused if no task of the project can have the figure.
    """
    scoring, source, of = config.stash[SCORING], source_of_gates(config), "selected task"
    names = [gate.figure.name for gate in scoring.gates if isinstance(gate, FailUnder)]
    # The published code decides itself what it scores.
    if not names or config.stash[RUN].settings.scoring == REFERENCE:
        return
    try:
        there = names_of_figures(scoring.metrics, [item.task for item in items])
        if source != ON_COMMAND_LINE and not set(names) <= set(there):
            of, there = "task", names_of_figures(scoring.metrics, list(tasks_of_project(config)))
    # What a metric raises here it raises in the trial as well, which then reports it.
    except (Exception, *OUTCOMES):
        return
    if missing := [name for name in names if name not in there]:
        raise SuperError(f"{source}: no {of} has {missing[0]}: choose from {', '.join(there)}")


def tasks_of_project(config: pytest.Config) -> Iterator[Task]:
    """Yield the tasks collected, and those of a run without arguments; a paper has one item."""
    sets, categories, splits = (
        tuple(ini_value(config, f"super_{name}")) for name in ("set", "category", "split")
    )
    by_default = replace(config.stash[RUN].settings, sets=sets, categories=categories, splits=splits)
    for task in [*config.stash.get(STATED, []), *tasks_by_default(config)]:
        if is_wanted(task, by_default):
            yield Items(task).item((0,)) if task.functions else task


def tasks_by_default(config: pytest.Config) -> Iterator[Task]:
    for name in ini_value(config, "super_tasks"):
        path = config.rootpath / name
        for file in [path] if path.is_file() else path.rglob(f"*{TASK_SUFFIX}"):
            # A broken file is an error of a run that collects it.
            with suppress(SuperError):
                yield from load_tasks(file)
