"""Rules for the papers of the set functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pytest_super.tasks.combinations import function_ids
from pytest_super.words import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.tasks.task import Task

Broken = Iterator[tuple[tuple[str | int, ...], str]]

NEEDED = ("functions", "experiments")
ONLY_PAPERS = ("paper", "functions", "experiments", "aggregate", "n")
# Items are scored by their experiments alone.
NOT_PAPERS = ("answer", "answer_unknown", "grade", "solution", "subproblems", "entrypoint", "landmarks")


def fields_of_sets(task: Task, _folder: Path) -> Broken:
    if task.set != "functions":
        for name in ONLY_PAPERS:
            if name in task.model_fields_set:
                yield (name,), f"`{name}` is for tasks of the set functions only"
        return
    for name in NEEDED:
        if not getattr(task, name):
            yield (), f"`{name}` is missing: a task of the set functions needs it"
    for name in NOT_PAPERS:
        if name in task.model_fields_set:
            yield (name,), f"a task of the set functions takes no `{name}`: its experiments decide"


def missing_repository(task: Task, _folder: Path) -> Broken:
    if task.set == "functions" and (task.repository is None or not task.repository.provide):
        place = ("repository",) if task.repository else ()
        yield place, "a task of the set functions needs a repository with `provide: true`: its code is masked"


def repeated_functions(task: Task, _folder: Path) -> Broken:
    yield from repeated("functions", "id", function_ids(task))
    yield from repeated("functions", "target", [one.target for one in task.functions])
    yield from repeated("experiments", "name", [one.name for one in task.experiments])


def repeated(field: str, part: str, values: list[str]) -> Broken:
    for place, value in enumerate(values):
        if (first := values.index(value)) < place:
            yield (field, place, part), f"`{field}[{first}]` has the same {part}: {value}"


def unknown_functions(task: Task, _folder: Path) -> Broken:
    """Experiments name known functions, and together all of them: nothing would grade another."""
    if not task.experiments:
        return
    ids = function_ids(task)
    used: set[str] = set()
    for place, experiment in enumerate(task.experiments):
        used.update(experiment.functions or ids)
        for index, name in enumerate(experiment.functions or ()):
            if name not in ids:
                hint = did_you_mean(name, ids) or f"; known are {', '.join(ids[:50])}"
                yield ("experiments", place, "functions", index), f"there is no function `{name}`{hint}"
    for place, name in enumerate(ids):
        if name not in used:
            yield (
                ("functions", place),
                f"no experiment needs the function `{name}`: nothing would grade it",
            )


def missing_paper(task: Task, folder: Path) -> Broken:
    if task.paper is not None and not (folder / task.paper.file).is_file():
        yield ("paper", "file"), f"there is no file {folder / task.paper.file}"


def too_many_at_once(task: Task, _folder: Path) -> Broken:
    for place, n in enumerate(task.n):
        if task.functions and n > len(task.functions):
            yield ("n", place), f"{n} functions cannot be masked together: there are {len(task.functions)}"


PAPER_RULES: tuple[tuple[tuple[str, ...], Callable[[Task, Path], Broken]], ...] = (
    (("set", "functions", "experiments"), fields_of_sets),
    (("set", "repository"), missing_repository),
    (("functions", "experiments"), repeated_functions),
    (("functions", "experiments"), unknown_functions),
    (("paper",), missing_paper),
    (("functions", "n"), too_many_at_once),
)
