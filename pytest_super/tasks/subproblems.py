"""Sub-problems: masked tasks that are cut from the solution of a task and stated in its file.

Only the stated cells count. No code is read here, so loading a task file costs nothing that grows with its
solution, and a task is the same on every machine.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from pytest_super.errors import TaskFileError
from pytest_super.tasks.solution import SolutionCell, answer_index, solution_cells
from pytest_super.tasks.task import PreExecuted, Solution, SubProblem, Task
from pytest_super.tasks.validation import broken_rules
from pytest_super.words import did_you_mean

Location = tuple[str | int, ...]
Broken = tuple[Location, str]

# Later cells need nothing of a cell with this tag but the files that it writes.
FILES_TAG = "files"
INHERITED = (
    *("repository", "answer", "answer_unknown", "tolerance", "grade", "landmarks", "entrypoint"),
    *("sandbox", "limits", "tags"),
)
# Mappings whose fields are inherited one by one.
MERGED = ("sandbox", "limits")
ANSWER = frozenset({"answer", "answer_unknown"})
# Errors in these fields are reported for the parent.
CHECKED_IN_PARENT = frozenset({"repository", "solution", "entrypoint", "category"})


class DerivedTask(Task):
    """The task of a sub-problem, with the cells of the solution that it was made from, by number, from 1."""

    masked_cells: tuple[int, ...] = Field(exclude=True)
    gold_cells: tuple[int, ...] = Field(exclude=True)
    """Cells of the sub-problem's solution, including the masked ones but not `submit`."""


class BadReferenceError(Exception):
    """A reference to a cell is wrong; `location` is its place within the sub-problem."""

    def __init__(self, location: Location, message: str) -> None:
        super().__init__(message)
        self.location = location


class Cut(NamedTuple):
    """How one sub-problem divides the cells of a solution; all cells by index."""

    masked: Collection[int]
    prefix: list[tuple[int | None, PreExecuted]]
    """Each step with the index of its cell, or None if it is not a cell of the solution."""
    gold: list[int]


def derived_tasks(
    parent: Task, items: object, unknown: Collection[str]
) -> tuple[list[tuple[int, Task]], list[Broken]]:
    """The task of each sub-problem with its index in the list, and all errors with their places in the file.

    `items` is the field as the file states it. Invalid items are skipped, because their errors are reported
    with the parent's fields. So are the errors of the parent's fields in `unknown`: that a sub-problem
    inherits nothing from them is not a further error.
    """
    if parent.solution is None:
        return [], [(("subproblems",), "sub-problems are cut from a `solution`, and the task has none")]
    try:
        cells = solution_cells(parent.solution, parent.folder)
        answer = answer_index(parent.solution, len(cells))
    except TaskFileError:
        # This error is reported with the parent's fields.
        return [], []
    tasks: list[tuple[int, Task]] = []
    broken: list[Broken] = []
    for index, stated in enumerate(items if isinstance(items, list) else ()):
        try:
            item = SubProblem.model_validate(stated)
        except ValidationError:
            continue
        task, found = derived_task(parent, item, cells, answer, unknown)
        broken += [(("subproblems", index, *location), message) for location, message in found]
        tasks.append((index, task))
    return tasks, broken


def derived_task(
    parent: Task, item: SubProblem, cells: Sequence[SolutionCell], answer: int, unknown: Collection[str]
) -> tuple[Task, list[Broken]]:
    """The task and its errors, with places within the sub-problem."""
    try:
        task = task_of(parent, item, cells, cut(item, cells, answer))
    except BadReferenceError as error:
        # A stand-in, so that a duplicate of its id is still reported.
        return Task(id=item.id, set="masked", query=item.query), [(error.location, str(error))]
    given = parent.model_fields_set | set(unknown)
    inherits_answer = "answer" not in item.model_fields_set and not ANSWER.isdisjoint(given)
    skipped = CHECKED_IN_PARENT | (ANSWER if inherits_answer else frozenset())
    if parent.grade is not None and "grade" not in item.model_fields_set:
        skipped |= {"grade"}
    return task, list(broken_rules(task, parent.folder, skipped))


def cut(item: SubProblem, cells: Sequence[SolutionCell], answer: int) -> Cut:
    """Raises BadReferenceError."""
    masked = find_all(cells, item.mask, "mask")
    goal = goal_of(item, cells, answer, masked)
    prefix = list(prefix_of(item, cells, masked, goal))
    pre_executed = {index for index, _ in prefix}
    if item.solution is None:
        gold = [index for index in range(goal + 1) if index not in pre_executed]
    else:
        gold = sorted(find_all(cells, item.solution, "solution"))
        check_solution(gold, pre_executed, masked, goal)
    return Cut(masked, prefix, gold)


def goal_of(item: SubProblem, cells: Sequence[SolutionCell], answer: int, masked: Collection[int]) -> int:
    goal, place = answer, ("goal",)
    if item.goal is not None:
        goal, *others = find_cells(cells, item.goal, place)
        if others:
            numbers = ", ".join(str(index + 1) for index in (goal, *others))
            raise BadReferenceError(place, f"`{item.goal}` means the cells {numbers}, where one is needed")
    if goal in masked:
        raise BadReferenceError(place, f"the goal, cell {goal + 1}, is masked")
    if goal < max(masked):
        raise BadReferenceError(
            place, f"the goal, cell {goal + 1}, comes before the masked cell {max(masked) + 1}"
        )
    return goal


def prefix_of(
    item: SubProblem, cells: Sequence[SolutionCell], masked: Collection[int], goal: int
) -> Iterator[tuple[int | None, PreExecuted]]:
    if item.pre_execute is None:
        yield from ((index, pre_executed(cells[index])) for index in range(min(masked)))
        return
    for place, step in enumerate(item.pre_execute):
        if step.solution_cell is None:
            yield None, PreExecuted(cell=step.cell, edit=step.edit, files=step.files)
            continue
        location = ("pre_execute", place)
        for index in find_cells(cells, step.solution_cell, location):
            if index in masked or index == goal:
                kind = "masked" if index in masked else "the goal"
                raise BadReferenceError(location, f"cell {index + 1} is {kind}, so it is not pre-executed")
            yield index, pre_executed(cells[index], files=step.files)


def pre_executed(cell: SolutionCell, *, files: bool = False) -> PreExecuted:
    return PreExecuted(cell=cell.source, files=files or FILES_TAG in cell.tags)


def check_solution(
    gold: Sequence[int], pre_executed: Collection[int | None], masked: Collection[int], goal: int
) -> None:
    for index in gold:
        if index in pre_executed or index > goal:
            reason = "is pre-executed" if index in pre_executed else f"comes after the goal, cell {goal + 1}"
            raise BadReferenceError(
                ("solution",), f"cell {index + 1} {reason}, so it is not part of the solution"
            )
    if missing := sorted({*masked, goal}.difference(gold)):
        kind = "the goal" if missing[0] == goal else "masked"
        raise BadReferenceError(
            ("solution",), f"cell {missing[0] + 1} is {kind}, so it must be part of the solution"
        )


def find_all(cells: Sequence[SolutionCell], references: Sequence[int | str], field: str) -> set[int]:
    """The indices of all cells that are named."""
    named = (find_cells(cells, reference, (field, place)) for place, reference in enumerate(references))
    return {index for indices in named for index in indices}


def find_cells(cells: Sequence[SolutionCell], reference: int | str, location: Location) -> list[int]:
    """Indices of the cells with this number, id or tag; an id wins over a tag. Raises BadReferenceError."""
    if isinstance(reference, int):
        if reference > len(cells):
            raise BadReferenceError(
                location, f"there is no cell {reference}: the solution has {len(cells)} code cells"
            )
        return [reference - 1]
    by_id = [index for index, cell in enumerate(cells) if cell.id == reference]
    found = by_id or [index for index, cell in enumerate(cells) if reference in cell.tags]
    if not found:
        raise BadReferenceError(
            location, f"no cell has the id or tag `{reference}`{nearest(cells, reference)}"
        )
    return found


def nearest(cells: Sequence[SolutionCell], reference: str) -> str:
    known = list(dict.fromkeys(name for cell in cells for name in (cell.id, *cell.tags) if name))
    if close := did_you_mean(reference, known, most=3):
        return close
    return f"; known are {', '.join(known[:20])}" if known else "; its cells have numbers only"


def task_of(parent: Task, item: SubProblem, cells: Sequence[SolutionCell], parts: Cut) -> DerivedTask:
    solution = [cells[index].source for index in parts.gold] + ([item.submit] if item.submit else [])
    task = DerivedTask.model_validate(
        {
            "id": item.id,
            "set": "masked",
            "category": item.category,
            "query": item.query,
            "pre_execute": [*parent.pre_execute, *(step for _, step in parts.prefix)],
            "solution": Solution(cells=solution),
            "metadata": item.metadata,
            "masked_cells": tuple(index + 1 for index in sorted(parts.masked)),
            "gold_cells": tuple(index + 1 for index in parts.gold),
            **inherited(parent, item),
        }
    )
    task._path = parent._path
    return task


def inherited(parent: Task, item: SubProblem) -> dict[str, Any]:
    """The fields that the sub-problem takes from its parent or states instead."""
    # Only stated fields: a default that is passed on would count as stated, such as an `answer` of null.
    fields = {name: getattr(parent, name) for name in INHERITED if name in parent.model_fields_set}
    if "answer" in item.model_fields_set:
        # It has an answer of its own, even if its parent's is unknown.
        fields.pop("answer_unknown", None)
    for name in item.model_fields_set & set(INHERITED):
        value = getattr(item, name)
        if name in MERGED and value is not None:
            # A default of the model must not override what the parent states.
            stated = {key: getattr(value, key) for key in value.model_fields_set}
            value = getattr(parent, name).model_copy(update=stated)
        # Null leaves a field at its default, except an answer, for which it is an error, and a grader or an
        # entrypoint, which it removes.
        if value is not None or name in ("answer", "grade", "entrypoint"):
            fields[name] = value
    return fields
