"""The items of papers (set functions) that a run collects, also those that its arguments name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from pytest_super.errors import SuperError, TaskFileError
from pytest_super.session.run import RUN
from pytest_super.tasks.combinations import Items, Places, all_places, item_id, places_in, sampled_places
from pytest_super.tasks.loading import load_tasks
from pytest_super.tasks.task import TASK_SUFFIX, Task
from pytest_super.words import printable

# Between a file and the name of an item in the arguments of pytest.
SEPARATOR = "::"


def items_of(task: Task, config: pytest.Config, file: Path) -> Iterable[Task]:
    """The task itself, or the items of a paper. Raises SuperError for too many."""
    if not task.functions:
        return [task]
    items = Items(task)
    named = [places for name in names_in(config, file, task) for places in [places_in(task, name)]]
    return map(items.item, dict.fromkeys([*asked_places(task, config), *named]))


def asked_places(paper: Task, config: pytest.Config) -> Iterator[Places]:
    """The combinations that the options and the file ask for. Raises SuperError for too many."""
    settings = config.stash[RUN].settings
    for n in settings.sizes or paper.n:
        if settings.sample is None:
            yield from all_places(paper, n)
        elif n <= len(paper.functions):
            yield from sampled_places(paper, n, settings.sample.size, settings.sample.seed)


def names_in(config: pytest.Config, file: Path, paper: Task) -> Iterator[str]:
    """The names of a paper's items in the arguments of pytest, without their epochs."""
    for argument in config.args:
        path, separator, name = argument.partition(SEPARATOR)
        name = name.partition("[")[0]
        if separator and name.startswith(f"{paper.id}_") and config.invocation_params.dir / path == file:
            yield name


def name_items_in_order(config: pytest.Config) -> None:
    """Let arguments such as `file::paper_1,0` name the item `paper_0,1`.

    Raises pytest.UsageError for functions that the paper does not have.
    """
    config.args[:] = map(in_order, config.args)


def in_order(argument: str) -> str:
    path, separator, name = argument.partition(SEPARATOR)
    if not separator or not path.endswith(TASK_SUFFIX) or "_" not in name:
        return argument
    plain, bracket, epoch = name.partition("[")
    try:
        for task in load_tasks(Path(path)):
            if task.functions and plain.startswith(f"{task.id}_"):
                known = item_id(task, places_in(task, plain))
                return f"{path}{SEPARATOR}{known}{bracket}{epoch}"
    except TaskFileError:
        # Its collection reports that.
        return argument
    except SuperError as error:
        raise pytest.UsageError(printable(str(error))) from None
    return argument
