"""Task files read from YAML: the scalars of JSON and YAML 1.2, and every error with its place.

PyYAML's own rules would change answers by reading them (`5e-05` and `1e-3` are strings there, `no`
is False, `1:30` is 90), so plain scalars are resolved by the core schema of YAML 1.2 instead.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, AnyStr

import yaml
from pydantic import BaseModel, ValidationError

from pytest_super.errors import TaskFileError
from pytest_super.rules import broken_rules
from pytest_super.task import Edit, Entrypoint, Limits, PreExecuted, Repository, SandboxSpec, Solution, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pydantic_core import ErrorDetails

MAX_BYTES = 16 * 2**20
# Aliases may make a small file expand without end.
MAX_VALUES = 200_000

Location = tuple[str | int, ...]

# Their source text is their value: an arXiv id such as 2205.00048 or a version 1.10 is no number.
TEXT_FIELDS = {("id",), ("repository", "version"), ("repository", "commit"), ("repository", "sha256")}
MODELS: dict[str, type[BaseModel]] = {
    "repository": Repository,
    "entrypoint": Entrypoint,
    "pre_execute": PreExecuted,
    "edit": Edit,
    "solution": Solution,
    "sandbox": SandboxSpec,
    "limits": Limits,
}


TAG = "tag:yaml.org,2002:"
STR, SEQ, MAP = TAG + "str", TAG + "seq", TAG + "map"
PLAIN = [
    (TAG + name, re.compile(pattern))
    for name, pattern in (
        ("null", r"~|null|Null|NULL|"),
        ("bool", r"true|True|TRUE|false|False|FALSE"),
        ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
        (
            "float",
            r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        ),
    )
]
# With what a plain scalar that is no string begins.
SPECIAL = frozenset("~nNtTfF-+.0123456789")


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's parser, in C where it can be, with YAML 1.2's plain scalars."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: Any) -> str:
        """The tag of a node that states none. Called for every node, so it is written for speed."""
        if kind is not yaml.ScalarNode:
            return MAP if kind is yaml.MappingNode else SEQ
        if value is None or not implicit[0] or (value and value[0] not in SPECIAL):
            return STR
        return next((tag for tag, pattern in PLAIN if pattern.fullmatch(value)), STR)


@dataclass(frozen=True)
class Problem:
    """One error in a task file; line and column count from 1."""

    line: int
    column: int
    message: str


class Unreadable(Exception):
    """The text is no YAML that we take; carries the problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def unreadable(mark: Any, message: str) -> Unreadable:
    """`mark` is PyYAML's, which counts from 0."""
    return Unreadable(Problem(mark.line + 1, mark.column + 1, message))


def load_tasks(path: Path, shown: str | None = None) -> list[Task]:
    """The tasks of a file, in order. Messages call it `shown`, by default its path.

    Raises TaskFileError with all that is wrong in the file, a `file:line:col: message` a line.
    """
    tasks: list[Task] = []
    problems: list[Problem] = []
    try:
        for node in documents(path):
            task, found = build_task(node, path)
            problems += found
            if task is not None:
                tasks.append(task)
        problems += duplicate_ids(tasks)
    except Unreadable as error:
        problems.append(error.problem)
    if not tasks and not problems:
        problems.append(Problem(1, 1, "there is no task in this file"))
    if problems:
        problems.sort(key=lambda problem: (problem.line, problem.column))
        raise TaskFileError("\n".join(f"{shown or path}:{p.line}:{p.column}: {p.message}" for p in problems))
    return tasks


def read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            # Not more than is there: a buffer of that size is made first.
            data = file.read(min(size, MAX_BYTES) + 1)
    except OSError as error:
        raise Unreadable(Problem(1, 1, f"cannot be read: {error.strerror}")) from None
    if len(data) > MAX_BYTES:
        message = f"the file has {size:,} bytes, a task file at most {MAX_BYTES:,}: keep data elsewhere"
        raise Unreadable(Problem(1, 1, message))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = position(data, error.start, b"\n")
        message = f"not UTF-8 (byte 0x{data[error.start]:02x}): save the file as UTF-8"
        raise Unreadable(Problem(line, column, message)) from None


def documents(path: Path) -> Iterator[yaml.Node]:
    text = read_text(path)
    try:
        for node in yaml.compose_all(text, Loader=Loader):
            if not is_empty(node):
                yield node
    except yaml.MarkedYAMLError as error:
        message = ", ".join(part for part in (error.context, error.problem) if part)
        raise unreadable(error.problem_mark or error.context_mark, f"broken YAML: {message}") from None
    except yaml.reader.ReaderError as error:
        line, column = position(text, error.position, "\n")
        raise Unreadable(Problem(line, column, f"broken YAML: {error.reason}")) from None


def position(text: AnyStr, index: int, newline: AnyStr) -> tuple[int, int]:
    return text.count(newline, 0, index) + 1, index - text.rfind(newline, 0, index)


def is_empty(node: yaml.Node | None) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and node.tag == TAG + "null" and not node.value)


def build_task(node: yaml.Node, path: Path) -> tuple[Task | None, list[Problem]]:
    if not isinstance(node, yaml.MappingNode):
        return None, [problem_at(node, "a task is a mapping of fields: id, set, query, …")]
    try:
        data = Reader().value(node)
    except Unreadable as error:
        return None, [error.problem]
    try:
        task = Task.model_validate(data)
    except ValidationError as error:
        return None, [explain(detail, node) for detail in error.errors(include_url=False)]
    task._path = str(path)
    task._line = node_at(node, ("id",)).start_mark.line + 1
    broken = [problem_at(node_at(node, loc), message) for loc, message in broken_rules(task, path.parent)]
    return task, broken


class Reader:
    """Turns nodes into plain JSON values; refuses duplicate keys, foreign tags and endless aliases."""

    def __init__(self) -> None:
        self.count = 0

    def value(self, node: yaml.Node, location: Location | None = ()) -> Any:
        """The value of a node; `location` is None where it is too deep to matter."""
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.tag == STR or (location and is_text(location)) else scalar(node)
        self.count += len(node.value)
        if self.count > MAX_VALUES:
            raise unreadable(node.start_mark, f"more than {MAX_VALUES:,} values once aliases are expanded")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, location)
        return [self.value(child, None) for child in node.value]

    def mapping(self, node: yaml.MappingNode, location: Location | None) -> dict[str, Any]:
        result: dict[str, Any] = {}
        is_deep = location is None or len(location) > 2
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise unreadable(key.start_mark, "a key must be plain text")
            name = key.value
            if name in result:
                raise unreadable(key.start_mark, f"the key `{name}` stands twice")
            result[name] = self.value(child, None if is_deep else (*location, name))  # type: ignore[misc]
        return result


def is_text(location: Location) -> bool:
    return location in TEXT_FIELDS or location[:2] == ("sandbox", "env")


def scalar(node: yaml.ScalarNode) -> Any:
    try:
        construct = CONSTRUCT[node.tag]
    except KeyError:
        raise unreadable(node.start_mark, f"the tag {node.tag} is not for task files") from None
    try:
        return construct(node.value)
    except ValueError as error:
        raise unreadable(node.start_mark, str(error)) from None


def parse_int(text: str) -> int:
    if text[:2] in ("0x", "0o"):
        return int(text, 0)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"not a number, or one of {len(text):,} digits: write it as text") from None


def parse_float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


CONSTRUCT: dict[str, Callable[[str], Any]] = {
    STR: str,
    TAG + "null": lambda _text: None,
    TAG + "bool": lambda text: text.lower() == "true",
    TAG + "int": parse_int,
    TAG + "float": parse_float,
}


def explain(detail: ErrorDetails, root: yaml.Node) -> Problem:
    """A pydantic error as a sentence at the place in the file that a person must change."""
    location: Location = detail["loc"]
    field = dotted(location)
    if detail["type"] == "missing":
        return problem_at(node_at(root, location[:-1]), f"`{field}` is missing")
    if detail["type"] == "extra_forbidden":
        return problem_at(key_at(root, location), f"unknown field `{field}`{nearest(location)}")
    reason = detail["msg"].removeprefix("Value error, ").removeprefix("Input ").removeprefix("String ")
    return problem_at(node_at(root, location), f"`{field}` {reason}" if field else reason)


def dotted(location: Location) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def nearest(location: Location) -> str:
    import difflib

    names = [part for part in location[:-1] if isinstance(part, str)]
    model: type[BaseModel] = MODELS[names[-1]] if names else Task
    close = difflib.get_close_matches(str(location[-1]), model.model_fields, n=1)
    return f"; did you mean `{close[0]}`?" if close else f"; known are {', '.join(model.model_fields)}"


def node_at(root: yaml.Node, location: Location) -> yaml.Node:
    """The node at `location`, or the deepest one on the way to it."""
    node = root
    for part in location:
        child = None
        if isinstance(node, yaml.MappingNode):
            child = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            child = node.value[part]
        if child is None:
            break
        node = child
    return node


def key_at(root: yaml.Node, location: Location) -> yaml.Node:
    parent = node_at(root, location[:-1])
    pairs: Iterable[tuple[yaml.Node, yaml.Node]] = (
        parent.value if isinstance(parent, yaml.MappingNode) else ()
    )
    return next((key for key, _ in pairs if key.value == location[-1]), parent)


def problem_at(node: yaml.Node, message: str) -> Problem:
    return Problem(node.start_mark.line + 1, node.start_mark.column + 1, message)


def duplicate_ids(tasks: list[Task]) -> Iterator[Problem]:
    lines: dict[str, int] = {}
    for task in tasks:
        if task.id in lines:
            yield Problem(task._line, 1, f"the id `{task.id}` stands already at line {lines[task.id]}")
        lines.setdefault(task.id, task._line)
