"""Sub-problems as tasks of their own: cut from the solution of the task that they stand in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_super.errors import TaskFileError
from pytest_super.masking.cells import UnknownCellError, find_cell, find_cells, solution_cells
from pytest_super.masking.dataflow import independent_cells, needed_cells
from pytest_super.masking.flow import Notebook
from pytest_super.tasks.solution import read_solution
from pytest_super.tasks.task import Derivation, PreExecuted, Solution, SubProblem, Task
from pytest_super.tasks.validation import broken_rules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pytest_super.masking.cells import SolutionCell
    from pytest_super.masking.effects import Effects

Broken = tuple[tuple[str | int, ...], str]

INHERITED = (
    *("repository", "answer", "answer_unknown", "tolerance", "landmarks", "entrypoint"),
    *("sandbox", "limits", "tags"),
)
# Their fields are inherited one by one.
MERGED = ("sandbox", "limits")
ANSWER = frozenset({"answer", "answer_unknown"})
# What is wrong with these was told where they stand, in the parent.
TOLD_BEFORE = frozenset({"repository", "solution", "entrypoint", "category"})


class BadReferenceError(Exception):
    """Carries what is wrong, at which place within the sub-problem."""

    def __init__(self, location: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.location = location


def derived_tasks(
    parent: Task, items: object, unknown: Collection[str] = ()
) -> tuple[list[tuple[int, Task]], list[Broken]]:
    """The task of each sub-problem with its index in the list, and what is wrong, with its place in the file.

    The parent's fields in `unknown` have errors of their own: that a sub-problem lacks their value is none.
    `items` are as the file has them: what is no sub-problem at all was told with the parent's fields.
    """
    known = [(index, valid(item)) for index, item in enumerate(items if isinstance(items, list) else ())]
    if parent.solution is None:
        return [], [(("subproblems",), "sub-problems are cut from a `solution`, and the task has none")]
    try:
        workshop = Workshop(parent, unknown)
    except TaskFileError:
        return [], []
    tasks: list[tuple[int, Task]] = []
    broken: list[Broken] = []
    for index, item in known:
        if item is not None:
            task, found = workshop.cut(item)
            broken += [(("subproblems", index, *location), message) for location, message in found]
            tasks.append((index, task))
    return tasks, broken


def valid(item: object) -> SubProblem | None:
    try:
        return SubProblem.model_validate(item)
    except ValidationError:
        return None


class Workshop:
    """Where the sub-problems of one task are cut; its solution is read once for all of them."""

    def __init__(self, parent: Task, unknown: Collection[str]) -> None:
        """Raises TaskFileError where the solution cannot be read."""
        assert parent.solution is not None
        self.parent = parent
        self.given = parent.model_fields_set | set(unknown)
        self.folder = Path(parent._path).parent
        self.cells = solution_cells(parent.solution, self.folder)
        self.answer = read_solution(parent.solution, self.folder).answer
        self.notebook = Notebook()
        self.effects = [self.notebook.read(cell.source) for cell in self.cells]

    def cut(self, item: SubProblem) -> tuple[Task, list[Broken]]:
        """The task, and what is wrong, with places within the sub-problem."""
        try:
            task = Cut(self, item).task()
        except BadReferenceError as error:
            # For its id, which may stand twice.
            return Task(id=item.id, set="masked", query=item.query), [(error.location, str(error))]
        return task, list(self.broken(item, task))

    def broken(self, item: SubProblem, task: Task) -> Iterator[Broken]:
        is_inherited = "answer" not in item.model_fields_set and not ANSWER.isdisjoint(self.given)
        yield from broken_rules(task, self.folder, TOLD_BEFORE | (ANSWER if is_inherited else frozenset()))

    def effects_to(self, goal: int, submit: str | None) -> list[Effects]:
        after = [self.notebook.fork().read(submit)] if submit else []
        return [*self.effects[: goal + 1], *after]


class Cut:
    """One sub-problem: which cells become what. Raises BadReferenceError."""

    def __init__(self, workshop: Workshop, item: SubProblem) -> None:
        self.parent = workshop.parent
        self.item = item
        self.cells: Sequence[SolutionCell] = workshop.cells
        self.masked = self.find_masked()
        self.goal = self.find_goal(workshop.answer)
        effects = workshop.effects_to(self.goal, item.submit)
        if item.pre_execute is None:
            self.prefix = independent_cells(effects, self.masked, self.goal)
            self.steps = [self.of_cell(index) for index in self.prefix]
        else:
            self.prefix, self.steps = self.stated_prefix()
        self.gold = needed_cells(effects, self.prefix, self.masked, self.goal)

    def of_cell(self, index: int) -> PreExecuted:
        return PreExecuted(cell=self.cells[index].source)

    def find_masked(self) -> set[int]:
        masked = set()
        for place, reference in enumerate(self.item.mask):
            masked.update(self.find(reference, ("mask", place)))
        return masked

    def find(self, reference: int | str, location: tuple[str | int, ...]) -> list[int]:
        try:
            return find_cells(self.cells, reference)
        except UnknownCellError as error:
            raise BadReferenceError(location, str(error)) from None

    def find_goal(self, answer: int) -> int:
        goal = answer
        if self.item.goal is not None:
            try:
                goal = find_cell(self.cells, self.item.goal)
            except UnknownCellError as error:
                raise BadReferenceError(("goal",), str(error)) from None
        name = f"the goal, cell {goal + 1},"
        if goal in self.masked:
            raise BadReferenceError(("goal",), f"{name} is masked")
        if goal < max(self.masked):
            raise BadReferenceError(("goal",), f"{name} stands before the masked cell {max(self.masked) + 1}")
        return goal

    def stated_prefix(self) -> tuple[list[int], list[PreExecuted]]:
        prefix: list[int] = []
        steps: list[PreExecuted] = []
        for place, step in enumerate(self.item.pre_execute or ()):
            if step.solution_cell is None:
                steps.append(PreExecuted(cell=step.cell, edit=step.edit))
                continue
            location = ("pre_execute", place)
            for index in self.find(step.solution_cell, location):
                if index in self.masked or index == self.goal:
                    kind = "masked" if index in self.masked else "the goal"
                    raise BadReferenceError(
                        location, f"cell {index + 1} is {kind}, so it is not pre-executed"
                    )
                prefix.append(index)
                steps.append(self.of_cell(index))
        return prefix, steps

    def task(self) -> Task:
        sources = [self.cells[index].source for index in self.gold]
        task = Task.model_validate(
            {
                "id": self.item.id,
                "set": "masked",
                "category": self.item.category,
                "query": self.item.query,
                "pre_execute": [*self.parent.pre_execute, *self.steps],
                "solution": Solution(cells=[*sources, *([self.item.submit] if self.item.submit else [])]),
                "metadata": self.item.metadata,
                **self.inherited(),
            }
        )
        task._path = self.parent._path
        task._derivation = Derivation(
            parent=self.parent.id,
            prefix=numbers(self.prefix),
            masked=numbers(sorted(self.masked)),
            gold=numbers(self.gold),
            is_computed=self.item.pre_execute is None,
        )
        return task

    def inherited(self) -> dict[str, Any]:
        """The fields that it takes from its parent, or states in its place."""
        own, inherited = self.item.model_fields_set, self.parent.model_fields_set
        fields = {name: getattr(self.parent, name) for name in INHERITED if name in inherited}
        if "answer" in own:
            fields.pop("answer_unknown", None)
        for name in own & set(INHERITED):
            value = getattr(self.item, name)
            if name in MERGED and value is not None:
                value = getattr(self.parent, name).model_copy(update=given_fields(value))
            # Without a value such a field is left at its default, but an answer must be seen to be wrong.
            if value is not None or name in ("answer", "entrypoint"):
                fields[name] = value
        return fields


def given_fields(model: Any) -> dict[str, Any]:
    return {name: getattr(model, name) for name in model.model_fields_set}


def numbers(indices: Sequence[int]) -> tuple[int, ...]:
    return tuple(index + 1 for index in indices)
