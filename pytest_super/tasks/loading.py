"""Loads tasks from their files, or reports all errors of a file with line and column."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from pytest_super.errors import TaskFileError
from pytest_super.tasks.task import Task
from pytest_super.tasks.validation import broken_rules
from pytest_super.tasks.yaml_reader import (
    MAX_VALUES,
    Location,
    Reader,
    Unreadable,
    documents,
    read_text,
    unreadable,
)
from pytest_super.tasks.yaml_scalars import STR
from pytest_super.words import did_you_mean, printable_line

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

# Values for required fields that a task with errors lacks. No rule reads them.
STAND_INS = {"id": "unknown", "set": "auto", "query": "unknown"}


def load_tasks(path: Path, shown: str | None = None, text: str | None = None) -> list[Task]:
    """The tasks of a file, in order, each before its sub-problems. Messages call it `shown`, else its path.

    `text` is the content of a file that is not written yet. Raises TaskFileError with all errors of the file,
    one `file:line:col: message` per line.
    """
    tasks: list[Task] = []
    problems: list[Unreadable] = []
    try:
        for node in documents(read_text(path) if text is None else text):
            made, found = build_tasks(node, path)
            problems += found
            tasks += made
    except Unreadable as error:
        problems.append(error)
    problems += duplicate_ids(tasks)
    if not tasks and not problems:
        problems.append(Unreadable(1, 1, "there is no task in this file"))
    if problems:
        problems.sort(key=lambda problem: (problem.line, problem.column))
        # A message can quote any part of the file, such as a key with a line break in it.
        lines = [f"{shown or path}:{p.line}:{p.column}: {printable_line(p.message)}" for p in problems]
        raise TaskFileError("\n".join(lines))
    return tasks


class TaskReader(Reader):
    """Continues after an error, so that all errors of a task are reported."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[Unreadable] = []
        self.unread: set[str] = set()
        """Fields whose value is not known."""

    def refuse(self, node: Node, message: str) -> None:
        self.problems.append(unreadable(node.start_mark, message))

    def fields(self, node: MappingNode) -> dict[str, Any]:
        """The fields of a task, with None for each that cannot be read. Raises Unreadable."""
        self.enter(node)
        fields: dict[str, Any] = {}
        for key, child in node.value:
            name = self.key(key, fields)
            if name is not None:
                # Most values are plain text, which cannot fail.
                is_text = child.tag == STR and type(child) is ScalarNode
                fields[name] = child.value if is_text else self.field(name, child)
        return fields

    def field(self, name: str, node: Node) -> Any:
        found = len(self.problems)
        # Aliases that expand without end are reported once.
        is_full = self.count > MAX_VALUES
        try:
            value = None if is_full else self.value(node, (name,))
        except Unreadable as error:
            value = None
            self.problems.append(error)
            # The error left behind the values that were being read; only the task itself is still open.
            del self.path[1:]
        if is_full or len(self.problems) > found:
            self.unread.add(name)
        return value


def build_tasks(node: Node, path: Path) -> tuple[list[Task], list[Unreadable]]:
    """The task as far as it can be read, its sub-problems, and all errors, without tasks that have no id."""
    if not isinstance(node, MappingNode):
        return [], [unreadable(node.start_mark, "a task is a mapping of fields: id, set, query, …")]
    reader = TaskReader()
    data = reader.fields(node)
    task, details, unknown = validate(data, reader.unread)
    task._path = str(path)
    task._line = node_at(node, ("id",)).start_mark.line + 1
    problems = [*reader.problems, *(explain(detail, node) for detail in details)]
    for location, message in broken_rules(task, path.parent, unknown):
        problems.append(unreadable(node_at(node, location).start_mark, message))
    tasks = [] if "id" in unknown else [task]
    # Without the solution, each reference to one of its cells would only be a further error.
    if data.get("subproblems") and "solution" not in unknown:
        # Most files have no sub-problems, and loading this module takes time.
        from pytest_super.tasks.subproblems import derived_tasks

        made, broken = derived_tasks(task, data["subproblems"], unknown)
        for index, one in made:
            one._line = node_at(node, ("subproblems", index, "id")).start_mark.line + 1
            tasks.append(one)
        problems += [unreadable(node_at(node, place).start_mark, message) for place, message in broken]
    return tasks, problems


def validate(
    data: dict[str, Any], unread: Collection[str]
) -> tuple[Task, list[ErrorDetails], Collection[str]]:
    """The task, the errors in its fields, and the fields whose value is unknown because of them."""
    if not unread:
        with suppress(ValidationError):
            return Task.model_validate(data), [], ()
    return salvage(data, unread)


def salvage(data: dict[str, Any], unread: Collection[str]) -> tuple[Task, list[ErrorDetails], set[str]]:
    """Do as `validate` does, for a task with errors: the task has only the valid fields."""
    # An unknown field is reported even if its value cannot be read.
    unread = Task.model_fields.keys() & unread
    kept = {name: value for name, value in data.items() if name not in unread}
    details = [detail for detail in errors_in(kept) if detail["loc"][0] not in unread]
    # First drop only the wrong part of a field, then the whole field if it is still wrong.
    for length in (2, 1):
        kept = without(kept, [detail["loc"][:length] for detail in errors_in(STAND_INS | kept)])
    unknown = {*unread, *data, *STAND_INS} - kept.keys()
    return Task.model_validate(STAND_INS | kept), details, unknown


def errors_in(data: dict[str, Any]) -> list[ErrorDetails]:
    try:
        Task.model_validate(data)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


def without(data: dict[str, Any], locations: Iterable[Location]) -> dict[str, Any]:
    result = {name: dict(value) if isinstance(value, dict) else value for name, value in data.items()}
    for *outer, name in locations:
        parent: Any = result.get(str(outer[0])) if outer else result
        if isinstance(parent, dict):
            parent.pop(name, None)
    return result


def explain(detail: ErrorDetails, root: Node) -> Unreadable:
    """A pydantic error as a sentence, at the place in the file that has to be changed."""
    location: Location = detail["loc"]
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    field = "".join(parts).removeprefix(".")
    if detail["type"] == "missing":
        return unreadable(node_at(root, location[:-1]).start_mark, f"`{field}` is missing")
    if detail["type"] == "extra_forbidden":
        return unreadable(key_at(root, location).start_mark, f"unknown field `{field}`{nearest(location)}")
    # Not at the top: only a message needs it.
    from pytest_super.tasks.reasons import reason

    words = reason(detail)
    return unreadable(node_at(root, location).start_mark, f"`{field}` {words}" if field else words)


def nearest(location: Location) -> str:
    model: type[BaseModel] = Task
    for name in location[:-1]:
        if isinstance(name, str):
            model = models_in(fields_of(model)[name].annotation)[0]
    known = fields_of(model)
    return did_you_mean(str(location[-1]), known) or f"; known are {', '.join(known)}"


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields by their names in files."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models in the type of a field, such as `SubProblem` in `list[SubProblem] | None`."""
    parts = get_args(annotation)
    if not parts:
        return [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []
    return [model for part in parts for model in models_in(part)]


def node_at(root: Node, location: Location) -> Node:
    """The node at `location`, or the deepest one on the way to it."""
    node = root
    for part in location:
        child = None
        if isinstance(node, MappingNode):
            child = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
            child = node.value[part]
        if child is None:
            break
        node = child
    return node


def key_at(root: Node, location: Location) -> Node:
    parent = node_at(root, location[:-1])
    pairs: Iterable[tuple[Node, Node]] = parent.value if isinstance(parent, MappingNode) else ()
    return next((key for key, _ in pairs if key.value == location[-1]), parent)


def duplicate_ids(tasks: list[Task]) -> Iterator[Unreadable]:
    lines: dict[str, int] = {}
    for task in tasks:
        if task.id in lines:
            yield Unreadable(task._line, 1, f"the id `{task.id}` already appears at line {lines[task.id]}")
        lines.setdefault(task.id, task._line)


def refuse_known_ids(tasks: list[Task], places: dict[str, str], file: str) -> None:
    """Results are stored by task id, so an id must be unique in a run. Raises TaskFileError."""
    errors = []
    for task in tasks:
        place = f"{file}:{task._line}"
        known = places.setdefault(task.id, place)
        if known != place:
            errors.append(f"{place}:1: the id `{task.id}` already appears at {known}")
    if errors:
        raise TaskFileError("\n".join(errors))
